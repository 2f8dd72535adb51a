// Left out: no page asks for it.
