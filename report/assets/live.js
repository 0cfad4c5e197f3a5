// Of a page that a server shows: a new version replaces the content, not the reader's settings.
function follow() {
  if (!document.documentElement.hasAttribute("data-live")) return;
  const status = document.getElementById("live");
  const events = new EventSource("/events");
  events.onopen = () => { status.textContent = " \u00b7 live"; };
  events.onerror = () => { status.textContent = " \u00b7 connection lost, trying again"; };
  events.onmessage = refresh;
}

function refresh() {
  const request = new XMLHttpRequest();
  request.open("GET", "/");
  request.responseType = "document";
  request.onload = () => {
    if (request.status === 200 && request.responseXML) replace(request.responseXML);
  };
  request.send();
}

function replace(fresh) {
  const setting = (id) => document.getElementById(id)?.value;
  const [service, stage] = [setting("service"), currentStage()];
  const focused = document.activeElement?.getAttribute("aria-label");
  const opened = new Map([...document.querySelectorAll("details")].map((each) => [each.dataset.pool, each.open]));
  document.querySelector("header time").replaceWith(document.adoptNode(fresh.querySelector("header time")));
  document.getElementById("report").replaceWith(document.adoptNode(fresh.getElementById("report")));
  for (const each of document.querySelectorAll("details")) each.open = opened.get(each.dataset.pool) ?? each.open;
  const select = document.getElementById("service");
  if (select && [...select.options].some((option) => option.value === service)) select.value = service;
  const radio = document.querySelector(`input[name="stage"][value="${stage}"]`);
  if (radio) radio.checked = true;
  show(fresh);
  if (focused) [...document.querySelectorAll("[aria-label]")].find((each) => each.getAttribute("aria-label") === focused)?.focus();
}
