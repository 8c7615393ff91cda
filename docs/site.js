// The theme's script puts a bar without a name at every block of code; readers of landmarks need different names.
const name = () =>
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((bar) => {
    const place = [...document.querySelectorAll("pre")].indexOf(bar.closest("pre")) + 1
    bar.setAttribute("aria-label", `Code ${place}`)
  })
new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true })
