// Progress and results without loading the page again, and copying. All else works without this file.
"use strict";

async function parsed(answer) {
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Replace the parts that change while a job runs by those of the page as it is now.
async function refresh() {
  const page = await parsed(await fetch(location.href));
  const focused = document.activeElement;
  for (const place of document.querySelectorAll("[data-live]")) {
    const now = page.getElementById(place.id);
    if (now) place.replaceChildren(...now.childNodes);
  }
  const same = focused.id && document.getElementById(focused.id);
  if (!same || same === focused) return;
  if (focused.tagName === "SELECT") same.value = focused.value;
  same.focus();
}

for (const place of document.querySelectorAll("[data-events]")) {
  const isLive = place.closest("[data-live]") !== null;
  const events = new EventSource(place.dataset.events);
  let version = Number(place.dataset.version);
  events.onmessage = async (message) => {
    const found = JSON.parse(message.data);
    if (found.over) events.close();
    if (found.over && !isLive) location.reload();
    else if (isLive && (found.over || found.version !== version)) {
      version = found.version;
      await refresh();
    }
    const steps = document.querySelector("[data-steps]");
    if (found.over || !steps) return;
    steps.textContent = found.steps.join(" → ") || "starting";
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
  fetch(place.dataset.ready).then(async (answer) => {
    if (answer.ok) location.reload();
    else document.getElementById("content").replaceWith((await parsed(answer)).getElementById("content"));
  });
}
// A point takes its k, as the button of its row does.
document.addEventListener("click", (event) => {
  const point = event.target.closest("a.point");
  const form = point && document.querySelector(`${point.getAttribute("href")} form`);
  if (!form) return;
  event.preventDefault();
  form.requestSubmit();
});
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}
