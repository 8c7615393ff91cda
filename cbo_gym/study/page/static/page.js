// The page works without this script, which loads the report, announces changes and keeps a form from being sent twice.
"use strict";

const report = document.querySelector("[data-report]");
if (report) {
  fetch(report.dataset.report)
    .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
    .then((html) => {
      const loaded = new DOMParser().parseFromString(html, "text/html").querySelector("#report");
      if (loaded) report.replaceWith(loaded);
    })
    .catch(() => {}); // the link stays
}

const news = document.querySelector("#news");
if (news) {
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(news.dataset.state);
      const { event } = await answer.json();
      if (event !== Number(news.dataset.event)) news.hidden = false;
    } catch {
      // the server does not answer; try again later
    }
  };
  setInterval(look, 5000);
}

for (const form of document.forms) {
  form.addEventListener("submit", () => {
    const button = form.querySelector("button.main");
    if (button) setTimeout(() => { button.disabled = true; button.textContent = "Working on it"; });
  });
}
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
