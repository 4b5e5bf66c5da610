"""The screens' appearance: ui/ has the parts, layout/ the frame around a page, pages/ one module per screen."""
