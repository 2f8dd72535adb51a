// Every page works without this script.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const find = selector => document.querySelector(selector);
  const on = (name, run) => document.addEventListener(name, run);
  const body = document.body;
  const say = text => { const box = find("#announce"); if (text) { box.textContent = ""; setTimeout(() => { box.textContent = text }, 60) } };

  // Typed text survives a lost session, secrets do not.
  const fields = form => [...form.elements].filter(field => /^(?!totp$|ids?$)./.test(field.name)
    && !["hidden", "password", "file", "submit", "button"].includes(field.type));
  const isBox = field => ["checkbox", "radio"].includes(field.type);
  const store = run => { try { return run(sessionStorage) } catch { return null } };
  const key = form => "kept:" + form.getAttribute("action");
  const keep = form => store(kept => kept.setItem(key(form), JSON.stringify(fields(form).map(field =>
    [field.name, isBox(field) ? field.checked : field.value]))));
  const restore = form => {
    const kept = store(kept => JSON.parse(kept.getItem(key(form))));
    let changed = false;
    fields(form).forEach((field, index) => {
      const [name, value] = kept?.[index] ?? [], property = isBox(field) ? "checked" : "value";
      if (name !== field.name || field[property] === value) return;
      field[property] = value;
      changed = true;
    });
    if (changed) form.closest("details")?.setAttribute("open", "");
    return changed;
  };
  on("input", event => { const form = event.target.form; if (form?.matches("[data-keep]")) keep(form) });
  if (find("[data-kept-done]")) store(kept => Object.keys(kept).forEach(name => name.startsWith("kept:") && kept.removeItem(name)));
  // Rejected forms have the server's text.
  if (all("form[data-keep]").filter(form => !form.querySelector(".error, .note.bad")).filter(restore).length) say(body.dataset.restored);

  // A double click sends once.
  on("submit", event => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sending) event.preventDefault();
    form.dataset.sending = "1";
    setTimeout(() => delete form.dataset.sending, 5000);
  });
  addEventListener("pageshow", () => all("[data-sending]").forEach(form => delete form.dataset.sending));

  on("click", async event => {
    const copy = event.target.closest("[data-copy]"), pick = event.target.closest("[data-select-all]"), menu = find(".account[open]");
    if (copy) try { await navigator.clipboard.writeText(copy.dataset.copy); say(copy.dataset.done) } catch {}
    if (pick) {
      const boxes = all("[type=checkbox]", pick.form), value = boxes.some(box => !box.checked);
      boxes.forEach(box => { box.checked = value });
    }
    if (menu && !menu.contains(event.target)) menu.open = false;
  });

  // "/" and Ctrl-K open the palette, "?" the list of keys, Escape closes a form or menu.
  const palette = find("#palette"), keys = find("#keys"), typed = palette?.querySelector("input");
  const choices = () => all("a", palette).filter(link => !link.parentElement.hidden);
  typed?.addEventListener("input", () => all(":scope > .choices-list li", palette).forEach(item => {
    item.hidden = !item.textContent.toLowerCase().includes(typed.value.trim().toLowerCase());
  }));
  palette?.addEventListener("keydown", event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], links = choices();
    if (!step || !links.length) return;
    event.preventDefault();
    const at = links.indexOf(document.activeElement) + step;
    (at < 0 ? typed : links[at % links.length]).focus();
  });
  // A fragment leads to a form, which the palette would cover.
  [palette, keys].forEach(dialog => dialog?.addEventListener("click", event => (event.target === dialog || event.target.closest("a")) && dialog.close()));
  on("keydown", event => {
    const isTyping = event.target.closest("input, textarea, select"), isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const isPalette = event.key === "/" ? !isTyping && isPlain : event.key === "k" && (event.ctrlKey || event.metaKey);
    const dialog = isPalette ? palette : event.key === "?" && !isTyping && isPlain ? keys : null;
    if (dialog && !find("dialog[open]")) { event.preventDefault(); dialog.showModal() }
    const open = event.key === "Escape" && (event.target.closest(".act[open]") ?? find(".account[open]"));
    if (open) { open.open = false; open.querySelector("summary").focus() }
  });

  // Live regions pause while hidden, in use or off.
  let isLive = true, signature = find("[data-signature]")?.dataset.signature, used = Date.now();
  const live = find("[data-live]");
  live?.addEventListener("click", () => {
    isLive = !isLive;
    live.setAttribute("aria-pressed", isLive);
    live.textContent = isLive ? live.dataset.on : live.dataset.off;
  });
  const isRegion = element => element.matches?.("[data-live-region]");
  on("htmx:before:request", event => {
    const region = event.target;
    if (isRegion(region) && (document.hidden || !isLive || region.querySelector("details[open], :focus-visible"))) event.preventDefault();
  });
  on("htmx:after:request", event => { if (!isRegion(event.target)) used = Date.now() });

  const lost = () => {
    const note = find("#session-lost");
    isLive = false;
    if (note?.hidden) { note.hidden = false; note.scrollIntoView({ block: "center" }) }
  };
  on("htmx:response:error", event => event.detail.ctx.response.status === 401 ? lost() : say(body.dataset.failed));
  on("htmx:error", () => say(body.dataset.failed));
  on("htmx:after:swap", event => {
    const target = document.getElementById(event.detail.ctx.target?.id) ?? document;
    const told = (target.matches?.("[data-announce]") ? target : target.querySelector("[data-announce]"))?.dataset;
    // Announced if alerts changed.
    if (told && (told.signature ?? NaN) !== signature) say(told.announce);
    signature = told?.signature ?? signature;
    if (document.activeElement === body) target.focus?.();
    start(target);
  });
  const idle = body.dataset.idle * 1000;
  if (idle) setInterval(() => { if (Date.now() - used > idle) lost() }, 5000);

  all("[data-until]").forEach(({ dataset, firstChild: text }) => setInterval(() => {
    const left = Math.max(0, (dataset.until - Date.now()) / 1000 | 0);
    text.data = text.data.replace(/\d+:\d\d/, (left / 60 | 0) + ":" + String(left % 60).padStart(2, "0"));
  }, 1000));

  const whole = value => String(Math.round(value)).replace("-", "−").replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const units = {
    count: whole,
    amount: value => whole(value / 100),
    money: value => "¥" + units.amount(value),
    cost: value => (value / 1e6).toFixed(2),
    duration: value => value >= 1e6 ? (value / 1e6).toFixed(1) + " s" : whole(value / 1e3) + " ms",
  };
  const color = name => {
    const probe = body.appendChild(document.createElement("span"));
    probe.className = "probe " + name;
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  const draw = figure => {
    const { unit, bars, labels, series } = JSON.parse(figure.dataset.chart);
    const plot = figure.querySelector(".plot"), format = units[unit];
    const least = { count: 1, cost: 1e4, duration: 1e3 }[unit] ?? 100;
    const incrs = [...Array(42).keys()].map(at => [1, 2, 5][at % 3] * least * 10 ** (at / 3 | 0));
    const axis = { stroke: color("c-text"), grid: { stroke: color("c-line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const size = () => ({ width: plot.clientWidth, height: 220 });
    const bar = bars && series.length === 1 && { paths: uPlot.paths.bars({ size: [0.7, 40] }), fill: color("s1") };
    plot.replaceChildren();
    const chart = new uPlot({
      ...size(), legend: { show: false }, padding: [12, 12, 0, 0], cursor: { drag: { x: false } },
      scales: {
        x: { time: false, ...(bars && { range: [-0.6, labels.length - 0.4] }) },
        y: { range: (_, low, high) => [Math.min(0, low), high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 32, space: 74, values: (_, at) => at.map(one => labels[one]?.slice(5) ?? "") },
        { ...axis, incrs, size: 66, space: 44, values: (_, at) => at.map(format) },
      ],
      series: [{}, ...series.map((one, index) => ({ stroke: color("s" + (index + 1)), width: 2, points: { show: one.values.filter(Number.isFinite).length < 3 }, ...bar }))],
      hooks: { setCursor: [({ cursor: { idx } }) => {
        plot.title = idx == null ? "" : [labels[idx], ...series.map(one => one.name + ": " + (one.values[idx] == null ? "–" : format(one.values[idx])))].join("\n");
      }] },
    }, [labels.map((_, index) => index), ...series.map(one => one.values)], plot);
    new ResizeObserver(() => plot.clientWidth && chart.setSize(size())).observe(plot);
  };
  const start = root => {
    all("[data-copy], [data-select-all], [data-live]", root).forEach(element => { element.hidden = false });
    if (window.uPlot) all("[data-chart]", root).forEach(draw);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => start(document));
  // The style sheet shows the tab of the fragment, or with a fault, or the first; this says which.
  const markTab = () => all("[data-tabs] a").forEach(link => {
    const isShown = find(link.hash)?.checkVisibility();
    link.toggleAttribute("aria-current", isShown);
    if (isShown) link.setAttribute("aria-current", "page");
  });
  addEventListener("hashchange", markTab);
  markTab();
  find(".side [aria-current]")?.scrollIntoView({ block: "nearest" });
  start(document);
})();
