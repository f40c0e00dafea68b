// Charts as SVG. Text from the engine is only ever assigned to textContent: names of clients are chosen by strangers.

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, text = null) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  return element;
}

export function html(name, className = "", text = null) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : short(value)} ${units[unit]}`;
}

// One decimal, unless it is 0.
const short = (value) => value.toFixed(1).replace(/\.0$/, "");

export function count(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= size) return `${short(value / (unit === "k" ? 1e3 : size))} ${unit}`;
  }
  return value >= 100 ? String(Math.round(value)) : short(value);
}

export function duration(seconds) {
  if (seconds < 0.9995) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 100) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} days`;
}

export function empty(container, text) {
  container.replaceChildren(html("p", "empty", text));
}

// The distance between the lines of an axis from 0 to at least `most`: at most five, with round numbers of the unit.
function stepOf(most, binary) {
  const unit = binary ? 1024 ** Math.max(0, Math.floor(Math.log2(most) / 10)) : 1;
  const raw = most / unit / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((each) => each * power >= raw * 0.999);
  return factor * power * unit;
}

// Moves labels apart, so that each has `height`; `labels` have y, which changes.
function spread(labels, height, bottom) {
  labels.sort((a, b) => a.y - b.y);
  for (let i = 1; i < labels.length; ++i) labels[i].y = Math.max(labels[i].y, labels[i - 1].y + height);
  let limit = bottom;
  for (let i = labels.length - 1; i >= 0; --i) {
    labels[i].y = Math.min(labels[i].y, limit);
    limit = labels[i].y - height;
  }
}

// Draws lines over time. `series`: [{name, points: [[seconds, value], ...]}], oldest first; a gap of more than `gap`
// seconds is not bridged. Values start at 0; `format` writes one. The last value is written beside each line.
export function timeChart(container, series, { now, span, gap, format, binary = false, least = 1, label }) {
  const points = series.flatMap((each) => each.points);
  if (points.length === 0) return empty(container, "No values yet.");
  const width = Math.max(container.clientWidth, 200), height = 190;
  const latest = series.map((each) => ({ name: each.name, value: each.points.at(-1)?.[1] ?? 0 }));
  const names = latest.map((each) => `${each.name} ${format(each.value)}`.trim());
  const right = Math.min(16 + 7.6 * Math.max(...names.map((name) => name.length)), width * 0.4);
  const left = 62, top = 10, bottom = height - 24;
  const step = stepOf(Math.max(least, ...points.map((each) => each[1])), binary);
  const most = step * Math.max(1, Math.ceil((Math.max(...points.map((each) => each[1])) / step) * 0.999));
  const x = (time) => left + ((time - (now - span)) / span) * (width - right - left);
  const y = (value) => bottom - (value / most) * (bottom - top);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img" });
  picture.setAttribute("aria-label", `${label}: ${names.join(", ")}`);

  for (let value = 0; value <= most * 1.001; value += step) {
    picture.append(svg("line", { class: value === 0 ? "axis" : "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    picture.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)));
  }
  const interval = [15, 30, 60, 120, 300].find((each) => span / each <= (width < 420 ? 2 : 4)) ?? 600;
  for (let back = 0; back <= span; back += interval) {
    const text = back === 0 ? "now" : back < 60 ? `−${back} s` : `−${back / 60} min`;
    picture.append(svg("line", { class: "axis", x1: x(now - back), x2: x(now - back), y1: bottom, y2: bottom + 4 }));
    picture.append(svg("text", { x: x(now - back), y: height - 5, "text-anchor": "middle" }, text));
  }
  const labels = [];
  series.forEach((each, index) => {
    const shown = each.points.filter(([time]) => time >= now - span);
    if (shown.length === 0) return;
    let path = "", before = -Infinity;
    for (const [time, value] of shown) {
      path += `${time - before > gap ? "M" : "L"}${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
      before = time;
    }
    if (shown.length === 1) path += "h0.01";  // a point, with the line's round ends
    picture.append(svg("path", { class: `series series-${index % 6}`, d: path, "stroke-linecap": "round" }));
    labels.push({ y: y(shown.at(-1)[1]) + 4, index });
  });
  spread(labels, 14, bottom + 4);
  for (const { y: at, index } of labels) {
    picture.append(svg("text", { class: `label-${index % 6}`, x: width - right + 8, y: at }, names[index]));
  }
  container.replaceChildren(picture);
}

// Draws how much of a device's memory is in use: `allocated` of `reserved` of `room`.
export function memoryBar(allocated, reserved, room) {
  const most = Math.max(room, reserved, allocated, 1);
  const picture = svg("svg", { class: "bar", viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": "true" });
  for (const [name, value] of [["room", most], ["reserved", reserved], ["allocated", allocated]]) {
    picture.append(svg("rect", { class: name, x: 0, y: 0, width: (1000 * value) / most, height: 14 }));
  }
  return picture;
}

function colourOf(name) {
  let hash = 0;
  for (const character of name) hash = (hash * 31 + character.codePointAt(0)) % 65521;
  return `flame-${hash % 6}`;
}

// Draws a tree {name, count, children: Map} as rows of frames, whose widths are shares of the root's count. `onSelect`
// is called with the frame that is clicked; `detail` is called with the text of the frame under the pointer.
export function flameChart(container, root, { title, onSelect, detail }) {
  const width = Math.max(container.clientWidth, 200), row = 22;
  const focused = container.contains(document.activeElement) ? document.activeElement.dataset.path : null;
  const frames = [];
  let depth = 0;
  const place = (node, level, at, path) => {
    const size = (node.count / root.count) * width;
    if (size < 0.5) return;
    depth = Math.max(depth, level);
    frames.push({ node, level, at, size, path });
    let next = at;
    const children = [...node.children.values()].sort((a, b) => b.count - a.count);
    for (const child of children) {
      place(child, level + 1, next, `${path}\n${child.name}`);
      next += (child.count / root.count) * width;
    }
  };
  place(root, 0, 0, "");
  const height = (depth + 1) * row;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "group" });
  picture.setAttribute("aria-label", title);
  for (const { node, level, at, size, path } of frames) {
    const text = `${node.name}: ${((100 * node.count) / root.count).toFixed(1)} %, ${node.count} samples`;
    const frame = svg("g", { class: "flame-frame", tabindex: 0, role: "button", "aria-label": text });
    frame.dataset.path = path;
    frame.append(svg("rect", { class: level === 0 ? "flame-root" : colourOf(node.name), x: at, y: level * row, width: size, height: row - 1, rx: 2 }));
    const room = Math.floor((size - 8) / 7.3);
    if (room >= 3) {
      const line = node.name.replace(/^.*\/(?=[^/]*:\d)/, "");  // a source line without its folders
      const shown = line.length > room ? `${line.slice(0, room - 1)}…` : line;
      frame.append(svg("text", { x: at + 4, y: level * row + 15 }, shown));
    }
    frame.addEventListener("pointerenter", () => detail(text));
    frame.addEventListener("focus", () => detail(text));
    frame.addEventListener("click", () => onSelect(node, path));
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        onSelect(node, path);
      }
    });
    picture.append(frame);
  }
  container.replaceChildren(picture);
  if (focused !== null) [...picture.children].find((each) => each.dataset.path === focused)?.focus();
}
