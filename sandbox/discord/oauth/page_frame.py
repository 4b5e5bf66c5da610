"""The frame of the pages that people see: one small style for consent pages and the console."""

from html import escape

STYLE = """
:root{color-scheme:light dark;--bg:#f2f3f5;--card:#fff;--text:#1e1f22;--dim:#5c5e66;--line:#d9dbe0;--brand:#4752c4}
@media(prefers-color-scheme:dark){:root{--bg:#1e1f22;--card:#2b2d31;--text:#f2f3f5;--dim:#b5bac1;--line:#3f4147;
--brand:#7983f5}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1rem}main.narrow{max-width:32rem;padding-top:4rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:1rem 1.2rem;margin:0 0 1rem}
h1{font-size:1.3rem;margin:0 0 .6rem}h2{font-size:1.05rem;margin:0 0 .5rem}p{margin:.3rem 0}.dim{color:var(--dim)}
a{color:var(--brand)}ul{list-style:none;margin:.5rem 0;padding:0}li{margin:.3rem 0}
.choice{display:block;padding:.55rem .8rem;border:1px solid var(--line);border-radius:.4rem;text-decoration:none}
.choice:hover,.choice:focus{border-color:var(--brand)}table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .5rem;border-top:1px solid var(--line);vertical-align:top}
.chip{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .55rem;margin:.
1rem;font-size:.85em}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1rem}code{font-size:.85em}
form{display:flex;flex-wrap:wrap;gap:.4rem;margin:.4rem 0}input,select,button{font:inherit;padding:.25rem .5rem;
border:1px solid var(--line);border-radius:.35rem;background:var(--bg);color:var(--text);min-width:0}
button{background:var(--brand);color:#fff;border:0;cursor:pointer}
@media(prefers-color-scheme:dark){button{color:#111}}
"""


def page(title: str, body: str, narrow: bool = False, head: str = "") -> str:
    """Return a whole page; `body` is markup, `title` is text."""
    name = ' class="narrow"' if narrow else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{head}<style>{STYLE}</style></head>'
        f"<body><main{name}>{body}</main></body></html>"
    )
