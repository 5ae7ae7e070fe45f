// The search box: names whose last part begins with what is typed, then names that contain it. `torch::` and `ramet::` before a
// name mean the same. The list (names.js) is read at the first key.
"use strict";
(function () {
  const last_part = (name) => name.split("::").pop();

  function rank(full, words) {  // lower is better, null: no match; of one depth, letters as typed come before the others
    const low = full.toLowerCase(), last = last_part(low), wanted = last_part(words).toLowerCase();
    const scope = words.slice(0, words.length - wanted.length).toLowerCase();
    if (scope && !low.includes(scope)) return null;
    const at = last.indexOf(wanted);
    if (at < 0) return null;
    return (at === 0 ? (last === wanted ? 0 : 100) : 200) + 10 * (full.split("::").length - 1) + Math.min(4, last.length / 8) + (full.includes(last_part(words)) ? 0 : 5);
  }

  // The entries of `names` that `typed` means, best first.
  function find(names, typed) {
    const words = typed.trim().replace(/^(::)?(torch|at|c10|ramet)::/i, "").replace(/\./g, "::").replace(/\(.*/, "");
    const found = words ? names.map((entry) => [rank(entry[0], words), entry]).filter(([r]) => r !== null) : [];
    return found.sort((a, b) => a[0] - b[0] || (a[1][0] < b[1][0] ? -1 : 1)).map(([, entry]) => entry);
  }
  if (typeof document === "undefined") return module.exports = {find};  // a test

  const box = document.getElementById("search"), list = document.getElementById("found");
  const most = 40;
  let marked = -1, asked = false;

  function show() {
    if (!box.value.trim() || !window.ramet_names) return list.hidden = true;
    const found = find(window.ramet_names, box.value);
    list.textContent = "";
    for (const [name, kind, url] of found.slice(0, most)) {
      const item = document.createElement("li"), link = document.createElement("a"), what = document.createElement("span");
      link.href = url;
      link.textContent = name;
      what.textContent = kind;
      link.append(what);
      item.append(link);
      list.append(item);
    }
    if (!found.length) list.append(Object.assign(document.createElement("li"), {textContent: "no such name"}));
    marked = -1;
    list.hidden = false;
  }

  function ask() {
    if (asked) return show();
    asked = true;
    const script = document.createElement("script");
    script.src = "names.js";
    script.onload = show;
    document.head.append(script);
  }

  function mark(step) {
    const links = list.querySelectorAll("a");
    if (!links.length) return;
    if (marked >= 0) links[marked].classList.remove("marked");
    marked = (marked + step + links.length) % links.length;
    links[marked].classList.add("marked");
    links[marked].scrollIntoView({block: "nearest"});
  }

  box.addEventListener("input", ask);
  box.addEventListener("focus", ask);
  box.addEventListener("keydown", (event) => {
    const links = list.querySelectorAll("a");
    if (event.key === "ArrowDown") mark(1);
    else if (event.key === "ArrowUp") mark(-1);
    else if (event.key === "Enter" && links.length) location.href = links[Math.max(0, marked)].href;
    else if (event.key === "Escape") list.hidden = true;
    else return;
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (!box.parentNode.contains(event.target)) list.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    }
  });
  const asked_for = new URLSearchParams(location.search).get("q");
  if (asked_for) {
    box.value = asked_for;
    ask();
  }
})();
