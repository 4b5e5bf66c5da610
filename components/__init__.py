"""What a screen looks like: ui/ has the parts, layout/ the frame around a page, pages/ one module per screen."""
