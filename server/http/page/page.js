// The page of an engine: requests /api/status every two seconds and /api/profile every five, one request at a time, and
// none while the page is hidden. Names and source lines come from clients and are shown as text only.

import { bytes, count, duration, empty, flameChart, html, memoryBar, timeChart } from "./charts.js";

const STATUS_INTERVAL = 2, PROFILE_INTERVAL = 5;  // seconds
const HISTORY = 600, FIRST_SPAN = 60;             // seconds shown in charts: at most, and at first
const PROFILE_WINDOW = 30;                        // seconds
const MOST_ROWS = 100;
const TOKEN_KEY = "teletensor-token";

const byId = (id) => document.getElementById(id);
const number = (text) => Number(text ?? 0);  // 64-bit integers are strings in protobuf's JSON

let token = sessionStorage.getItem(TOKEN_KEY);
let version = 0;  // of the token: answers to requests with an earlier one are ignored
let history = [];
let profiles = [];
let zoom = null;  // names of the frames from the root to the enlarged one
let failing = "";  // the time since which the engine does not answer

class Refused extends Error {}

async function request(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10_000) });
  if (answer.status === 401 || answer.status === 403) throw new Refused((await answer.text()).trim());
  if (!answer.ok) throw new Error(`the engine answered with the status ${answer.status}`);
  return answer.json();
}

// ---- tables

// `columns`: [{name, of(row): text, number?: boolean}].
function table(container, columns, rows, none) {
  if (rows.length === 0) return empty(container, none);
  const head = html("tr");
  for (const column of columns) {
    const cell = html("th", column.number ? "number" : "", column.name);
    cell.scope = "col";
    head.append(cell);
  }
  const body = html("tbody");
  for (const row of rows.slice(0, MOST_ROWS)) {
    const line = html("tr");
    for (const column of columns) {
      const cell = html("td", column.number ? "number" : "text");
      cell.dataset.name = column.name;
      cell.append(html("span", "", column.of(row)));
      line.append(cell);
    }
    body.append(line);
  }
  const header = html("thead");
  header.append(head);
  const all = html("table");
  all.append(header, body);
  const parts = [all];
  if (rows.length > MOST_ROWS) parts.push(html("p", "note", `${rows.length - MOST_ROWS} more are not shown.`));
  container.replaceChildren(...parts);
}

const limited = (value, limit, format) => (limit > 0 ? `${format(value)} of ${format(limit)}` : format(value));

// ---- devices

const deviceName = (code) => (code === 0 ? "cpu" : `cuda:${code & 0xff}`);

function showDevices(status, gpus) {
  const parts = status.devices.map(({ device, memory }) => {
    const part = html("div", "device");
    const allocated = number(memory.allocated), reserved = number(memory.reserved), limit = number(memory.limit);
    const total = number(device.total_memory);
    part.append(html("h3", "", `${deviceName(number(device.device))} · ${device.name}`));
    part.append(memoryBar(allocated, reserved, limit || total));
    const line = html("p");
    line.append(html("span", "key allocated"), `${bytes(allocated)} allocated, `);
    line.append(html("span", "key reserved"), `${bytes(reserved)} reserved of `);
    line.append(limit ? `the limit of ${bytes(limit)}` : `${bytes(total)}, without a limit`);
    const failed = number(memory.out_of_memory);
    line.append(`; peak ${bytes(number(memory.peak_allocated))}`, failed ? `; ${count(failed)} requests failed` : "");
    part.append(line);
    return part;
  });
  for (const gpu of gpus) {
    const part = html("div", "device");
    part.append(html("h3", "", `GPU ${gpu.index} of the host · ${gpu.name}`));
    const busy = gpu.utilization === undefined ? "utilisation not reported" : `${Math.round(100 * gpu.utilization)} % busy`;
    const memory = gpu.used_bytes === undefined ? "" : `; ${bytes(gpu.used_bytes)} of ${bytes(gpu.total_bytes)} used`;
    part.append(html("p", "", `${busy}${memory}, by all processes`));
    parts.push(part);
  }
  byId("devices").replaceChildren(...parts);
}

// ---- charts over time

const sum = (rows, field) => rows.reduce((total, row) => total + number(row[field]), 0);

function remember(status) {
  const now = status.uptime_seconds;
  if (history.length > 0 && now < history.at(-1).time) history = [];  // another process answers
  const before = history.at(-1);
  const moment = {
    time: now,
    memory: new Map(status.devices.map(({ device, memory }) => [deviceName(number(device.device)), number(memory.allocated)])),
    frames: sum(status.principals, "frames"),
    instructions: sum(status.principals, "instructions"),
    of: new Map(status.sessions.map((session) => [session.id, number(session.instructions)])),
  };
  moment.rates = new Map();
  if (before) {
    const seconds = now - before.time;
    moment.frameRate = Math.max(0, moment.frames - before.frames) / seconds;
    moment.instructionRate = Math.max(0, moment.instructions - before.instructions) / seconds;
    for (const [id, instructions] of moment.of) {
      if (before.of.has(id)) moment.rates.set(id, (instructions - before.of.get(id)) / seconds);
    }
    before.of = before.rates = null;
  }
  history.push(moment);
  while (history[0].time < now - HISTORY) history.shift();
}

function showCharts() {
  const now = history.at(-1).time;
  const age = now - history[0].time;
  const span = [FIRST_SPAN, 120, 300].find((each) => age <= each) ?? HISTORY;
  const shared = { now, span, gap: 3.5 * STATUS_INTERVAL };
  const devices = [...history.at(-1).memory.keys()];
  const memory = devices.map((name) => ({
    name,
    points: history.filter((each) => each.memory.has(name)).map((each) => [each.time, each.memory.get(name)]),
  }));
  timeChart(byId("memory"), memory, { ...shared, format: bytes, binary: true, least: 1024, label: "Allocated memory" });
  for (const [id, field, label] of [["instructions", "instructionRate", "Instructions per second"], ["frames", "frameRate", "Frames per second"]]) {
    const points = history.filter((each) => each[field] !== undefined).map((each) => [each.time, each[field]]);
    timeChart(byId(id), points.length ? [{ name: "", points }] : [], { ...shared, format: count, label });
  }
}

// ---- sessions, queue, principals

function showSessions(status) {
  const rates = history.at(-1).rates;
  const rows = [...status.sessions].sort((a, b) => number(b.held_bytes) - number(a.held_bytes));
  const state = (row) => `${row.state}${row.queue_position ? `, place ${row.queue_position}` : ""}${row.connected ? "" : ", connection lost"}`;
  table(
    byId("sessions"),
    [
      { name: "Session", of: (row) => String(row.id) },
      { name: "Principal", of: (row) => row.principal },
      { name: "Client", of: (row) => row.client },
      { name: "State", of: state },
      { name: "Waited in all", of: (row) => duration(row.waited_seconds), number: true },
      { name: "Memory", of: (row) => limited(number(row.held_bytes), number(row.limit_bytes), bytes), number: true },
      { name: "Handles", of: (row) => count(number(row.handles)), number: true },
      { name: "Instructions/s", of: (row) => (rates.has(row.id) ? count(rates.get(row.id)) : "–"), number: true },
      { name: "Failed", of: (row) => count(number(row.failed)), number: true },
      { name: "Open for", of: (row) => duration(row.age_seconds), number: true },
    ],
    rows,
    "No session is open.",
  );
  const queued = status.sessions.filter((row) => row.queue_position > 0).sort((a, b) => a.queue_position - b.queue_position);
  table(
    byId("queue"),
    [
      { name: "Place", of: (row) => String(row.queue_position) },
      { name: "Session", of: (row) => String(row.id) },
      { name: "Principal", of: (row) => row.principal },
      { name: "Waited in all", of: (row) => duration(row.waited_seconds), number: true },
    ],
    queued,
    "No session waits for a turn.",
  );
}

function showPrincipals(status) {
  const workers = new Map(status.workers.map((worker) => [worker.principal, worker]));
  const processOf = (worker) => (worker ? `${worker.pid}, ${bytes(number(worker.resident_bytes))} resident` : "");
  table(
    byId("principals"),
    [
      { name: "Principal", of: (row) => row.name },
      { name: "Sessions", of: (row) => count(number(row.sessions)), number: true },
      { name: "Memory", of: (row) => limited(number(row.held_bytes), number(row.memory_limit), bytes), number: true },
      { name: "Limit on the CPU", of: (row) => (number(row.host_memory_limit) ? bytes(number(row.host_memory_limit)) : "none"), number: true },
      { name: "Limit per GPU", of: (row) => (number(row.gpu_memory_limit) ? bytes(number(row.gpu_memory_limit)) : "none"), number: true },
      { name: "Handles", of: (row) => limited(number(row.handles), number(row.handle_limit), count), number: true },
      { name: "Weight", of: (row) => `${row.weight} ${row.priority}` },
      { name: "Processor time", of: (row) => duration(row.cpu_seconds), number: true },
      ...(workers.size ? [{ name: "Process", of: (row) => processOf(workers.get(row.name)) }] : []),
    ],
    [...status.principals].sort((a, b) => b.cpu_seconds - a.cpu_seconds),
    "No principal has opened a session.",
  );
}

// ---- models

function showModels(status) {
  byId("models-section").hidden = status.models.length === 0;
  const mean = (row, field) => (number(row.requests) ? duration(row[field] / number(row.requests)) : "–");
  const size = (row) => (number(row.batches) ? (number(row.rows) / number(row.batches)).toFixed(1) : "–");
  table(
    byId("models"),
    [
      { name: "Model", of: (row) => (row.version ? `${row.name}, version ${row.version}` : row.name) },
      { name: "State", of: (row) => (row.reason ? `${row.ready ? "serves an earlier one" : "not ready"}: ${row.reason}` : "serves") },
      { name: "Device", of: (row) => row.device },
      { name: "Requests", of: (row) => count(number(row.requests)), number: true },
      { name: "Failed", of: (row) => count(number(row.failures)), number: true },
      { name: "Waiting", of: (row) => count(number(row.queued)), number: true },
      { name: "Rows per batch", of: size, number: true },
      { name: "In the queue", of: (row) => mean(row, "queue_seconds"), number: true },
      { name: "Computing", of: (row) => mean(row, "compute_seconds"), number: true },
      { name: "Memory", of: (row) => bytes(number(row.memory_bytes)), number: true },
    ],
    status.models,
    "No model is served.",
  );
}

// ---- the profile

const keyOf = (entry) => JSON.stringify([entry.principal, entry.session, entry.phase, entry.op, entry.kernel, entry.site]);

// What was sampled in about the last PROFILE_WINDOW seconds; at first, everything since the engine's start.
function recent() {
  const last = profiles.at(-1);
  if (profiles.length === 1) return { seconds: last.seconds, entries: last.entries, all: true };
  const first = profiles[0];
  const known = new Map(first.entries.map((entry) => [keyOf(entry), number(entry.count)]));
  const entries = last.entries
    .map((entry) => ({ ...entry, count: number(entry.count) - (known.get(keyOf(entry)) ?? 0) }))
    .filter((entry) => entry.count > 0);
  return { seconds: last.seconds - first.seconds, entries, all: false };
}

function doing(entry) {
  if (entry.phase === "execute") return entry.op || "execute";
  return entry.op ? `${entry.phase}: ${entry.op}` : entry.phase || "other";
}

function treeOf(entries) {
  const root = { name: "all sessions", count: 0, children: new Map() };
  for (const entry of entries) {
    const names = [entry.session === "0" ? entry.principal : `${entry.principal}, session ${entry.session}`];
    if (entry.site) names.push(entry.site);
    names.push(doing(entry));
    if (entry.kernel && entry.kernel !== entry.op) names.push(entry.kernel);
    let node = root;
    node.count += number(entry.count);
    for (const name of names) {
      if (!node.children.has(name)) node.children.set(name, { name, count: 0, children: new Map() });
      node = node.children.get(name);
      node.count += number(entry.count);
    }
  }
  return root;
}

function slowest(entries) {
  const rows = new Map();
  for (const entry of entries) {
    const name = doing(entry);
    if (!rows.has(name)) rows.set(name, { name, count: 0, sites: new Map() });
    const row = rows.get(name);
    row.count += number(entry.count);
    if (entry.site) row.sites.set(entry.site, (row.sites.get(entry.site) ?? 0) + number(entry.count));
  }
  for (const row of rows.values()) row.site = [...row.sites].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
  return [...rows.values()].sort((a, b) => b.count - a.count).slice(0, 12);
}

function showProfile() {
  const { rate } = profiles.at(-1);
  if (!rate) {
    byId("operators-note").textContent = byId("flame-note").textContent = "";
    empty(byId("operators"), "The engine samples nothing: it was started with --profile-rate=0.");
    return empty(byId("flame"), "The engine samples nothing: it was started with --profile-rate=0.");
  }
  const { seconds, entries, all } = recent();
  const period = all ? `Since the engine's start ${duration(seconds)} ago` : `In the last ${duration(seconds)}`;
  const total = sum(entries, "count");
  byId("operators-note").textContent = `${period}, by samples at ${rate} per second; times of sessions that work at once add up. Waiting for a turn counts as prepare.`;
  table(
    byId("operators"),
    [
      { name: "Operator or phase", of: (row) => row.name },
      { name: "Time", of: (row) => duration(row.count / rate), number: true },
      { name: "Share", of: (row) => `${((100 * row.count) / total).toFixed(1)} %`, number: true },
      { name: "Most at", of: (row) => row.site || "–" },
    ],
    slowest(entries),
    "No session had work.",
  );
  byId("flame-note").textContent = `${period}: sessions, below them source lines, operators and their kernels. Widths are shares of the samples; select a frame to enlarge it.`;
  if (total === 0) {
    byId("flame-detail").textContent = "";
    return empty(byId("flame"), "No session had work.");
  }
  let root = treeOf(entries), found = root;
  for (const name of zoom ?? []) found = found?.children.get(name);
  if (!found) zoom = null;
  if (found && zoom) root = { ...found, name: `← ${found.name}` };
  flameChart(byId("flame"), root, {
    title: `${period}, by session, source line and operator`,
    detail: (text) => (byId("flame-detail").textContent = text),
    onSelect: (node, path) => {
      const below = path.split("\n").slice(1);
      zoom = below.length === 0 ? null : [...(zoom ?? []), ...below];
      showProfile();
    },
  });
}

function rememberProfile(profile) {
  if (profiles.length > 0 && profile.seconds < profiles.at(-1).seconds) profiles = [];
  profiles.push(profile);
  while (profiles.length > 2 && profiles[1].seconds <= profile.seconds - PROFILE_WINDOW) profiles.shift();
}

// ---- requests

function connected(text, className) {
  byId("connection").textContent = text;
  byId("connection").className = className;
}

function showStatus({ status, gpus }) {
  remember(status);
  const queued = status.sessions.filter((row) => row.queue_position > 0).length;
  const silent = status.workers.filter((worker) => !worker.answers).length;
  byId("summary").textContent =
    `version ${status.engine_version} · up ${duration(status.uptime_seconds)} · ${bytes(number(status.resident_bytes))} resident · ` +
    `${count(status.sessions.length)} sessions, ${count(queued)} queued` +
    (status.workers.length ? ` · ${count(status.workers.length)} worker processes` : "") +
    (silent ? `, ${count(silent)} of them without an answer` : "");
  byId("data").hidden = false;
  showDevices(status, gpus);
  showCharts();
  showSessions(status);
  showPrincipals(status);
  showModels(status);
}

function askForToken(reason) {
  byId("data").hidden = true;
  byId("forget").hidden = true;
  byId("summary").textContent = "";
  byId("login").hidden = false;
  byId("refusal").textContent = reason;
  connected("", "");
}

// Repeats a request until the engine refuses the token, or another one is given.
async function repeat(path, interval, show) {
  const mine = version;
  while (mine === version) {
    try {
      if (!document.hidden) {
        const data = await request(path);
        if (mine !== version) return;
        show(data);
        byId("login").hidden = true;
        byId("forget").hidden = !token;
        failing = "";
        connected(`updated ${new Date().toLocaleTimeString()}`, "good");
      }
    } catch (error) {
      if (mine !== version) return;
      if (error instanceof Refused) {
        ++version;
        askForToken(token ? `The engine refused the token: ${error.message}` : "");
        token = null;
        sessionStorage.removeItem(TOKEN_KEY);
        return;
      }
      failing ||= new Date().toLocaleTimeString();
      connected(`No answer since ${failing} (${error.message}); trying again`, "problem");
    }
    await new Promise((resume) => setTimeout(resume, 1000 * interval));
  }
}

function begin() {
  ++version;
  history = [];
  profiles = [];
  zoom = null;
  repeat("api/status", STATUS_INTERVAL, showStatus);
  repeat("api/profile", PROFILE_INTERVAL, (profile) => {
    rememberProfile(profile);
    byId("data").hidden = false;
    showProfile();
  });
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const given = byId("token").value.trim();
  byId("token").value = "";
  if (!/^[\x21-\x7e]+$/.test(given)) {
    byId("refusal").textContent = "Expected a token: letters, digits and signs without spaces.";
    return;
  }
  token = given;
  sessionStorage.setItem(TOKEN_KEY, token);
  connected("Asking the engine ...", "");
  begin();
});

byId("forget").addEventListener("click", () => {
  ++version;
  token = null;
  sessionStorage.removeItem(TOKEN_KEY);
  askForToken("");
});

let resized = 0;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    if (history.length > 0) showCharts();
    if (profiles.length > 0) showProfile();
  }, 150);
});

byId("host").textContent = location.host;
begin();
