"use strict";
const by = (id) => document.getElementById(id);
const claims = [...document.querySelectorAll(".claim")].map((row) => ({
  row,
  topic: row.parentNode.dataset.topic,
  words: row.querySelector(".row > span").textContent.toLowerCase(),
  cells: [...row.querySelectorAll("summary [data-v]")].map((cell) => [cell.dataset.impl, cell.dataset.v]),
}));

function shows(claim, topic, verdict, impl, words) {
  const own = claim.cells.filter(([who]) => !impl || who === impl);
  const judged = verdict === "erratum" ? "erratum" in claim.row.dataset
    : !verdict || own.some(([, v]) => verdict.split(" ").includes(v));
  return (!topic || claim.topic === topic) && (!impl || own.length) && judged && claim.words.includes(words);
}

function filter() {
  const [topic, verdict, impl] = ["topic", "verdict", "impl"].map((id) => by(id).value);
  const words = by("words").value.trim().toLowerCase();
  for (const claim of claims) claim.row.hidden = !shows(claim, topic, verdict, impl, words);
  for (const section of document.querySelectorAll("section"))
    section.hidden = !section.querySelector(".claim:not([hidden])");
  for (const card of document.querySelectorAll(".card")) card.hidden = impl && card.dataset.impl !== impl;
  by("shown").textContent = `${claims.filter((claim) => !claim.row.hidden).length} of ${claims.length} claims`;
}

function openLinked() {
  const row = by(decodeURIComponent(location.hash.slice(1)));
  if (!row) return;
  if (row.closest("[hidden]")) {
    by("controls").reset();
    filter();
  }
  for (let box = row; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  row.scrollIntoView();
}

by("theme").addEventListener("click", () => {
  const style = document.documentElement.style;
  const dark = style.colorScheme ? style.colorScheme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  style.colorScheme = dark ? "light" : "dark";
});
by("controls").addEventListener("input", filter);
by("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", openLinked);
by("theme").hidden = by("controls").hidden = false;
filter();
openLinked();
