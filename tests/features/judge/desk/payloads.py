"""Markup that runs a script where a page does not escape it; each sets `window.hacked`."""

PAYLOADS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "<svg onload=window.hacked=1>",
    '"><script>window.hacked=1</script>',
    "' onmouseover='window.hacked=1",
    '" autofocus onfocus="window.hacked=1',
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe>",
    "</textarea><script>window.hacked=1</script>",
    "</title><script>window.hacked=1</script>",
    "<a href=javascript:window.hacked=1>ferry</a>",
    "{{ 7 * 7 }}{% raw %}<script>window.hacked=1</script>{% endraw %}",
    "<mark><style>@import 'javascript:window.hacked=1'</style></mark>",
    "<details open ontoggle=window.hacked=1>",
    "<form action=javascript:window.hacked=1><button id=keys>ferry</button></form>",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;<meta http-equiv=refresh content='0;url=javascript:window.hacked=1'>",
)
