"""The building blocks of the console's pages: markup, forms, pictures and names of people, and the current place."""
