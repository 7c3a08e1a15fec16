/* What is copied from an example is what was typed: prompts and answers stay behind. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-clipboard-target]");
  const block = button && button.closest(".language-pycon, .language-console");
  if (!block || button.hasAttribute("data-clipboard-text")) return;
  const typed = block.querySelector("code").innerText.split("\n").filter((line) => /^(>>>|\.\.\.|\$)( |$)/.test(line));
  button.setAttribute("data-clipboard-text", typed.map((line) => line.replace(/^(>>>|\.\.\.|\$) ?/, "")).join("\n"));
}, true);

/* The theme's search is a dialog without a name. */
document.querySelectorAll(".md-search").forEach((dialog) => dialog.setAttribute("aria-label", "Search"));

/* A wide table scrolls by the keyboard, too. */
addEventListener("load", () =>
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap) => {
    if (wrap.scrollWidth > wrap.clientWidth) wrap.tabIndex = 0;
  }));
