import { Idiomorph } from 'idiomorph/dist/idiomorph.esm.js';
import { agoText, durationText } from '../duration.ts';

/*
 * What the pages gain where scripts run: they stay live, durations tick, and keys move through rows. All
 * else works without it.
 */

const KEY = 'drizzle-queue-every';
const every = document.querySelector<HTMLSelectElement>('#every');
const live = document.querySelector<HTMLElement>('#live');
const said = document.querySelector<HTMLElement>('#said');

/** The server's time minus this browser's. */
let skewMs = 0;
let etag: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let asking: AbortController | undefined;
/** Grows while the server does not answer. */
let failures = 0;

function page(): HTMLElement | null {
  return document.querySelector('#page');
}

function readClock(): void {
  const now = Number(page()?.dataset.now);
  if (Number.isFinite(now)) skewMs = now - Date.now();
}

function tick(): void {
  const nowMs = Date.now() + skewMs;
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[data-tick]')) {
    const at = new Date(time.dateTime);
    const text = time.dataset.tick === 'ago' ? agoText(at, nowMs) : durationText(nowMs - at.getTime());
    if (time.textContent !== text) time.textContent = text;
  }
}

function everyMs(): number {
  return Number(every?.value ?? 0) * 1_000;
}

function plan(): void {
  clearTimeout(timer);
  if (everyMs() === 0 || document.hidden) return;
  timer = setTimeout(refresh, Math.min(everyMs() * 2 ** failures, 60_000));
}

/** Whether a change of the page would take something out of somebody's hands. */
function isBusy(): boolean {
  const selection = document.getSelection();
  const selecting = selection !== null && !selection.isCollapsed && page()?.contains(selection.anchorNode);
  return selecting === true || document.querySelector('.asking[open]') !== null;
}

async function refresh(): Promise<void> {
  if (document.hidden) return;
  if (isBusy()) return plan();
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const from = location.href;
  try {
    const answer = await fetch(from, {
      headers: { accept: 'text/html', ...(etag !== undefined && { 'if-none-match': etag }) },
      credentials: 'same-origin',
      cache: 'no-store',
      redirect: 'error',
      signal: mine.signal,
    });
    if (answer.status === 200) {
      const html = await answer.text();
      if (location.href === from && !mine.signal.aborted) {
        etag = answer.headers.get('etag') ?? undefined;
        take(html);
      }
    } else if (answer.status !== 304) throw new Error(String(answer.status));
    failures = 0;
    beat();
  } catch {
    if (mine.signal.aborted) return;
    failures = Math.min(failures + 1, 5);
    live?.classList.add('is-lost');
  }
  plan();
}

/** Changes the page into a newer one of its own, but for what somebody has opened, chosen or written. */
function take(html: string): void {
  const next = new DOMParser().parseFromString(html, 'text/html').querySelector('#page');
  const now = page();
  if (next === null || now === null) return;
  Idiomorph.morph(now, next, {
    morphStyle: 'outerHTML',
    ignoreActiveValue: true,
    restoreFocus: true,
    callbacks: {
      beforeAttributeUpdated: (name: string, node: Element) =>
        !(name === 'open' && node.tagName === 'DETAILS') && !(name === 'class' && node.hasAttribute('data-at')),
      beforeNodeMorphed: (old: Node) =>
        // A chart takes its new figures itself.
        !(old instanceof HTMLElement && old.classList.contains('uplot')),
      beforeNodeRemoved: (old: Node) => !(old instanceof HTMLElement && old.classList.contains('uplot')),
      beforeNodeAdded: (node: Node) =>
        !(node instanceof SVGElement && document.querySelector('.uplot') !== null && node.tagName === 'svg' && node.parentElement?.matches('.plot') === true),
    },
  });
  readClock();
  tick();
  document.dispatchEvent(new CustomEvent('morphed'));
}

function beat(): void {
  live?.classList.remove('is-lost');
  live?.classList.add('is-beating');
  setTimeout(() => live?.classList.remove('is-beating'), 300);
}

/** Rows, and the one that keys have moved to. */
function move(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('[data-row]')];
  const links = rows.flatMap((row) => row.querySelector<HTMLAnchorElement>('.row-link') ?? []);
  if (links.length === 0) return;
  const at = links.findIndex((link) => link.closest('[data-row]')?.contains(document.activeElement));
  links[Math.max(0, Math.min(links.length - 1, at < 0 ? (by > 0 ? 0 : links.length - 1) : at + by))]?.focus();
}

/** Opens or presses the first form of an action on the focused row, or on the page. */
function press(path: RegExp): void {
  const within = document.activeElement?.closest('[data-row]') ?? document.querySelector('main');
  for (const form of within?.querySelectorAll<HTMLFormElement>('form.action') ?? []) {
    if (!path.test(form.getAttribute('action') ?? '')) continue;
    const asking = form.closest<HTMLDetailsElement>('.asking');
    if (asking !== null) asking.open = true;
    form.querySelector<HTMLButtonElement>('button[type=submit]')?.focus();
    return;
  }
}

const KEYS: Readonly<Record<string, readonly [what: string, act: () => void]>> = {
  '/': ['filter', () => toFilter()],
  j: ['next row', () => move(1)],
  k: ['previous row', () => move(-1)],
  r: ['redrive', () => press(/\/redrive/)],
  c: ['cancel', () => press(/\/cancel$/)],
  p: ['pause or resume', () => press(/\/(pause|resume)/)],
  l: ['live on or off', () => toggle()],
  '?': ['these keys', () => help()],
};

function toFilter(): void {
  const filter = document.querySelector<HTMLInputElement>('#filter');
  if (filter !== null) return filter.focus();
  const jobs = document.querySelector<HTMLAnchorElement>('nav a[href$="/jobs"]');
  if (jobs !== null) location.assign(jobs.href);
}

function toggle(): void {
  if (every === null) return;
  every.value = every.value === '0' ? '2' : '0';
  every.dispatchEvent(new Event('change'));
}

function help(): void {
  const open = document.querySelector('dialog');
  if (open !== null) return open.close();
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', 'Keys');
  const list = document.createElement('dl');
  for (const [key, [what]] of Object.entries(KEYS)) {
    const term = document.createElement('dt');
    term.append(Object.assign(document.createElement('kbd'), { textContent: key }));
    list.append(term, Object.assign(document.createElement('dd'), { textContent: what }));
  }
  const close = Object.assign(document.createElement('button'), { textContent: 'Close', className: 'button' });
  close.addEventListener('click', () => dialog.close());
  dialog.append(list, close);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener('keydown', (event) => {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === 'Escape') {
    for (const asking of document.querySelectorAll<HTMLDetailsElement>('.asking[open]')) asking.open = false;
    if (target instanceof HTMLInputElement) target.blur();
    return;
  }
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement)
    return;
  const found = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (found === undefined) return;
  event.preventDefault();
  found[1]();
});

// One question at a time, and a click elsewhere is a no.
document.addEventListener('click', (event) => {
  for (const asking of document.querySelectorAll<HTMLDetailsElement>('.asking[open]')) {
    if (event.target instanceof Node && !asking.contains(event.target)) asking.open = false;
  }
});

// A form goes once.
document.addEventListener('submit', ({ target }) => {
  if (!(target instanceof HTMLFormElement) || target.method !== 'post') return;
  for (const button of target.querySelectorAll('button')) setTimeout(() => button.toggleAttribute('disabled', true));
});

every?.addEventListener('change', () => {
  remember(every.value);
  if (said !== null) said.textContent = every.value === '0' ? 'Live updates off' : 'Live updates on';
  failures = 0;
  clearTimeout(timer);
  if (everyMs() > 0) void refresh();
});

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    clearTimeout(timer);
    asking?.abort();
  } else if (everyMs() > 0) void refresh();
});
document.querySelector('#keys')?.addEventListener('click', help);

function remember(value: string): void {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // Storage is off; then it is asked for again on the next page.
  }
}

function remembered(): string {
  try {
    return localStorage.getItem(KEY) ?? '2';
  } catch {
    return '2';
  }
}

if (page() !== null && live !== null && every !== null) {
  live.hidden = false;
  every.value = remembered();
  if (every.value === '') every.value = '2';
  // What was said is said once: a reload does not say it again.
  const url = new URL(location.href);
  if (url.searchParams.has('done')) {
    url.searchParams.delete('done');
    url.searchParams.delete('n');
    history.replaceState(null, '', url);
    const notice = document.querySelector('#notice')?.textContent;
    if (said !== null && notice) said.textContent = notice;
    // And it stays to be read for a while.
    setTimeout(plan, 6_000);
  } else plan();
  readClock();
  setInterval(tick, 1_000);
}
