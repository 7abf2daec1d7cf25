"use strict";
(() => {
  const bar = document.querySelector(".origin");
  const told = bar.querySelector(".told");
  const rule = document.head.appendChild(document.createElement("style"));
  let pinned = null;

  const textOf = (at) => {
    const own = document.getElementById("s" + at.replace(":", "-"));
    if (!own) return "";
    const file = own.closest("section").querySelectorAll("h3.file")[at.split(":")[0]];
    const line = own.querySelector(".t").textContent.trim();
    return `${file ? file.textContent : ""}:${at.split(":")[1]}  ${line}`;
  };

  const mark = (at) => {
    rule.textContent = at ? `[data-at="${at}"]{background:var(--lit);stroke:var(--ink)}` : "";
    bar.hidden = !at;
    if (at) told.textContent = textOf(at);
  };

  const pin = (at) => {
    pinned = at;
    bar.classList.toggle("pinned", Boolean(at));
    mark(at);
  };

  const atOf = (node) => {
    const row = node instanceof Element ? node.closest("[data-at]") : null;
    return row ? row.dataset.at : null;
  };

  document.addEventListener("mouseover", (event) => {
    if (!pinned && event.target.closest(".origin") === null) mark(atOf(event.target));
  });
  document.addEventListener("focusin", (event) => {
    if (!pinned && event.target.closest(".origin") === null) mark(atOf(event.target));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".own, .at[href]");
    if (link) pin(atOf(link));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") pin(null);
  });

  const open = (node) => {
    for (let box = node; box; box = box.parentElement) {
      if (box instanceof HTMLDetailsElement) box.open = true;
    }
  };

  const go = (step) => {
    const rows = [...document.querySelectorAll(`[data-at="${pinned}"]:not(rect)`)];
    const middle = innerHeight / 2;
    const places = rows.filter((row) => row.getClientRects().length)
      .map((row) => [row, row.getBoundingClientRect().top]);
    const ahead = places.filter(([, top]) => (step > 0 ? top > middle + 4 : top < middle - 30));
    const next = step > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (next) next[0].scrollIntoView({ block: "center", inline: "nearest" });
  };
  bar.querySelector(".next").addEventListener("click", () => go(1));
  bar.querySelector(".previous").addEventListener("click", () => go(-1));
  bar.querySelector(".unmark").addEventListener("click", () => pin(null));

  const show = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    open(target);
    target.scrollIntoView({ block: target.matches(".r") ? "center" : "start" });
  };
  addEventListener("hashchange", show);
  show();

  const contents = document.querySelector("nav details");
  if (matchMedia("(max-width: 900px)").matches) contents.open = false;
  const links = new Map();
  for (const link of document.querySelectorAll("nav > details > ol > li > a")) {
    links.set(link.hash.slice(1), link);
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id);
      if (!link) continue;
      if (isIntersecting) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section")) watcher.observe(section);
})();
