// Progress without loading the page again, and copying. All else works without this file.
"use strict";
for (const place of document.querySelectorAll("[data-events]")) {
  const events = new EventSource(place.dataset.events);
  events.onmessage = (message) => {
    const found = JSON.parse(message.data);
    if (found.over) {
      events.close();
      location.reload();
      return;
    }
    place.querySelector("[data-steps]").textContent = found.steps.join(" → ") || "starting";
    const bar = place.querySelector("progress");
    if (found.share === null) bar.removeAttribute("value");
    else bar.value = found.share;
  };
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) return;
    place.querySelector("[data-steps]").textContent = "the studio does not answer: is it still running?";
  };
}
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}
