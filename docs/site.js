// What readers with a keyboard or a screen reader need and the theme's script takes away: names that differ for the bars
// that it puts at blocks of code, and a way into code and tables that scroll.
const mend = () => {
  const blocks = [...document.querySelectorAll("pre")]
  for (const bar of document.querySelectorAll(".md-code__nav:not([aria-label])"))
    bar.setAttribute("aria-label", `Code ${blocks.indexOf(bar.closest("pre")) + 1}`)
  for (const wide of document.querySelectorAll(":is(pre > code, .md-typeset__scrollwrap, .formula):not([tabindex])"))
    if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0
}
const changes = { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] }
new MutationObserver(mend).observe(document.documentElement, changes)
