// What saves clicks and waiting on the pages; without it they work all the same, but for dropping a file.
//   form[data-live="#id"]          sent as one types; the answer takes the place of the element #id
//   [data-poll="/address"]         asked for anew every data-every milliseconds, in its own place
//   [data-key="1"]                 pressed by that key, or gone to if it is a field, wherever one is but in a field
//   input[data-with="name"]        goes together with the field of that name in the same form: a slider and its number
//   input[data-empties="name"]     a box that says there is no value: it empties the field, and the field unticks it
//   [data-again="id"]              what is chosen in it presses the button of this id
//   form.you                       sent without leaving a page whose fields would be lost
//   form[data-drop]                takes a file that is dropped or picked, and sends it; data-most: bytes it may have
//   template[data-remarks]         in an answer: what stands in its elements with data-into="id" goes into the elements
//                                  of these ids, and data-at is where the slider of data-slid="name" goes; all others with data-remark are emptied
"use strict";

const patience = 120; // milliseconds after the last key

function said(words) {
  const told = document.getElementById("told");
  told.textContent = words;
  told.hidden = !words;
}

async function ask(address, options = {}) {
  return fetch(address, { ...options, headers: { "X-Live": "1", ...(options.headers || {}) }, redirect: "follow" });
}

async function words(answer) { // the guard, which stands before the pages, answers in JSON
  const text = await answer.text();
  if (!(answer.headers.get("Content-Type") || "").includes("json")) return text;
  const problem = JSON.parse(text);
  const note = document.createElement("p");
  note.className = "note warning";
  note.textContent = `${problem.title}: ${problem.detail}. ${problem.hint || ""}`;
  return note.outerHTML;
}

function remark(range) {
  const told = range.querySelector("template[data-remarks]");
  if (!told) return;
  for (const each of document.querySelectorAll("[data-remark]")) each.replaceChildren();
  for (const each of told.content.children) {
    const slider = each.dataset.slid && document.querySelector(`input[data-with="${CSS.escape(each.dataset.slid)}"]`);
    if (slider) slider.value = each.dataset.at;
    const place = document.getElementById(each.dataset.into);
    if (place) place.replaceChildren(...each.childNodes);
  }
  told.remove();
}

function put(element, html) {
  const range = document.createRange().createContextualFragment(html);
  remark(range);
  if (range.firstElementChild && range.firstElementChild.id === element.id) element.replaceWith(range);
  else element.replaceChildren(range);
  begin(document);
}

// ---- an answer while one types

function live(form) {
  let timer, running;
  const send = async () => {
    const place = document.querySelector(form.dataset.live);
    if (!place) return;
    if (running) running.abort();
    running = new AbortController();
    place.setAttribute("aria-busy", "true");
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await ask(form.action, { method: "POST", body, signal: running.signal });
      put(place, await words(answer));
      said("");
    } catch (error) {
      if (error.name !== "AbortError") said("The server does not answer. Is it still running?");
    } finally {
      const now = document.querySelector(form.dataset.live);
      if (now) now.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(send, patience);
  });
  form.addEventListener("submit", (event) => {
    if (event.submitter && event.submitter.hasAttribute("formaction")) return;
    event.preventDefault();
    send();
  });
}

// ---- a piece that is asked for anew

function poll(element) {
  const every = Number(element.dataset.every || 1000);
  const again = async () => {
    if (!element.isConnected) return;
    try {
      const answer = await ask(element.dataset.poll);
      if (answer.headers.get("X-Go-To")) {
        location.assign(answer.headers.get("X-Go-To"));
        return;
      }
      put(element, await words(answer));
    } catch {
      said("The server does not answer. Is it still running?");
    }
    if (element.isConnected) setTimeout(again, every);
  };
  setTimeout(again, every);
}

// ---- a slider and its number

function pair(slider) {
  const field = slider.form.elements.namedItem(slider.dataset.with);
  slider.addEventListener("input", () => { field.value = slider.value; });
  field.addEventListener("input", () => { // the answer says what is written otherwise: 14:30, or 1.234,50 €
    if (field.value !== "" && isFinite(Number(field.value))) slider.value = field.value;
  });
}

// ---- a box for no value, and its field

function empty(box) {
  const own = [box.dataset.empties, box.dataset.empties.replace("v", "o")];
  const fields = own.map((name) => box.form.elements.namedItem(name)).filter((field) => field);
  box.addEventListener("input", () => { if (box.checked) for (const field of fields) field.value = ""; });
  for (const field of fields) field.addEventListener("input", () => { if (field.value !== "") box.checked = false; });
}

// ---- who works here

function you(form) {
  form.addEventListener("submit", async (event) => {
    if (!document.querySelector("form[data-live]")) return; // another page, which is made anew with the name
    event.preventDefault();
    try {
      const answer = await ask(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      said(document.createRange().createContextualFragment(await words(answer)).textContent);
    } catch {
      said("The server does not answer. Is it still running?");
    }
  });
}

// ---- what makes another page of it

function again(element) {
  const button = document.getElementById(element.dataset.again);
  element.addEventListener("change", () => button.form.requestSubmit(button));
}

// ---- a file

function drop(form) {
  const picked = form.querySelector("input[type=file]");
  const send = async (file) => {
    if (!file) return;
    if (file.size > Number(form.dataset.most || Infinity)) {
      said(`${file.name} is too large to be sent. Put it into the folder instead.`);
      return;
    }
    said(`Sending ${file.name} …`);
    try {
      const answer = await ask(`${form.action}?name=${encodeURIComponent(file.name)}`, {
        method: "POST",
        body: file,
        headers: { "Content-Type": "application/octet-stream", "X-Form-Token": form.elements.form_token.value },
      });
      if (answer.ok) location.assign(answer.headers.get("X-Go-To") || "/start");
      else {
        said("");
        put(form.querySelector("[data-told]"), await words(answer));
      }
    } catch {
      said("The file could not be sent. Is the server still running, and the file still there?");
    }
  };
  picked.addEventListener("change", () => send(picked.files[0]));
  form.addEventListener("submit", (event) => { event.preventDefault(); send(picked.files[0]); });
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  }
  for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => { event.preventDefault(); send(event.dataTransfer.files[0]); });
}

// ---- keys

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "Escape") event.target.blur(); // out of a field, so that keys press again
  if (event.target.closest("input:not([type=checkbox],[type=radio],[type=range]), textarea, select, [contenteditable]")) return;
  const found = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (found) {
    event.preventDefault();
    if (found.matches("input:not([type=checkbox],[type=radio]), select, textarea")) found.focus();
    else found.click();
  }
});

const kinds = { "form[data-live]": live, "[data-poll]": poll, "input[data-with]": pair, "input[data-empties]": empty, "form.you": you, "[data-again]": again, "form[data-drop]": drop };

function begin(root) {
  for (const [chosen, start] of Object.entries(kinds)) {
    for (const element of root.querySelectorAll(chosen)) {
      if (element.dataset.begun) continue;
      element.dataset.begun = "1";
      start(element);
    }
  }
}

begin(document);
