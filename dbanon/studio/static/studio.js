// Changes, progress and results without loading the page again, and copying. All else works without this file.
"use strict";

// Make a part of the page like that of a newer one. What is the same stays, and so does its focus.
function renew(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeType !== Node.ELEMENT_NODE || old.nodeName !== now.nodeName || old.id !== now.id) {
    old.replaceWith(now);
    return;
  }
  for (const name of old.getAttributeNames()) {
    if (name !== "open" && !now.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const name of now.getAttributeNames()) old.setAttribute(name, now.getAttribute(name));
  const [ours, theirs] = [[...old.childNodes], [...now.childNodes]];
  for (const [i, one] of theirs.entries()) {
    if (i < ours.length) renew(ours[i], one);
    else old.append(one);
  }
  for (const one of ours.slice(theirs.length)) one.remove();
}

// Show the page of an answer in place of this one.
async function show(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const focused = document.activeElement;
  const chosen = focused.value;
  document.title = page.title;
  renew(document.body, page.body);
  const same = focused.id && document.getElementById(focused.id);
  if (!same) return;
  if (focused.tagName === "SELECT") same.value = chosen;
  if (same !== document.activeElement) same.focus();
}

// Forms with changes of the draft that were not sent: who leaves them is asked first.
const changed = new Set();
document.addEventListener("input", ({ target }) => {
  if (target.form?.hasAttribute("data-changes")) changed.add(target.form);
});
window.addEventListener("beforeunload", (event) => {
  if (changed.size) event.preventDefault();
});

// Send a form whose answer is this page again, unless a button of it leads to another page.
let isSending = false;
document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (isSending) return event.preventDefault();
  changed.delete(form);
  if (!form.hasAttribute("data-here") || event.submitter?.name === "page") return;
  event.preventDefault();
  isSending = true;
  try {
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const answer = await fetch(form.action, { method: "POST", body });
    if (answer.redirected) history.replaceState(null, "", answer.url);
    await show(answer);
    for (const one of document.forms) one.reset();
    changed.clear();
    document.getElementById("entry")?.scrollIntoView();
    isSending = false;
  } catch {
    isSending = false;
    form.removeAttribute("data-here");
    form.requestSubmit(event.submitter);
  }
});

let shown = Promise.resolve(); // the last page, as one may be slower than the next
for (const place of document.querySelectorAll("[data-events]")) {
  const events = new EventSource(place.dataset.events);
  let version = Number(place.dataset.version);
  events.onmessage = async (message) => {
    const found = JSON.parse(message.data);
    if (found.over) events.close();
    if (found.over || found.version !== version) {
      version = found.version;
      shown = shown.catch(() => {}).then(async () => show(await fetch(location.href)));
      await shown;
    }
    const steps = document.querySelector("[data-steps]");
    if (found.over || !steps) return;
    if (steps.textContent !== found.steps) steps.textContent = found.steps;
    document.querySelector("[data-seconds]").textContent = found.seconds;
    const bar = document.querySelector("[data-events] progress");
    if (found.share === null) bar.removeAttribute("value");
    else bar.value = found.share;
  };
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return;
    document.querySelector("[data-steps]").textContent = "the studio does not answer: is it still running?";
  };
}
for (const place of document.querySelectorAll("[data-ready]")) {
  fetch(place.dataset.ready).then(show);
}
document.addEventListener("click", async (event) => {
  // A point takes its k, as the button of its row does.
  const point = event.target.closest("a.point");
  const form = point && document.querySelector(`${point.getAttribute("href")} form`);
  if (form) {
    event.preventDefault();
    form.requestSubmit();
  }
  const copies = event.target.closest("[data-copy]");
  if (copies) {
    await navigator.clipboard.writeText(document.getElementById(copies.dataset.copy).textContent);
    copies.textContent = "Copied";
  }
});
