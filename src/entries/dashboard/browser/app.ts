import { Idiomorph } from 'idiomorph/dist/idiomorph.esm.js';
import { agoText, durationText } from '../duration.ts';
import { help, onKey } from './keys.ts';
import { showSelected } from './selection.ts';
import { showZone } from './zone.ts';

/*
 * What the pages gain where scripts run: they stay live, durations tick, and keys move through rows. All
 * else works without it.
 */

const KEY = 'drizzle-queue-every';
const every = document.querySelector<HTMLSelectElement>('#every');
const live = document.querySelector<HTMLElement>('#live');
const said = document.querySelector<HTMLElement>('#said');
const goesOn = document.querySelector<HTMLFormElement>('form[data-goes-on]');

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

/** Whether a change of the page would disturb what the user is doing. */
function isBusy(): boolean {
  const selection = document.getSelection();
  const selecting = selection !== null && !selection.isCollapsed && page()?.contains(selection.anchorNode);
  const chosen = document.querySelector('.choose input[type=checkbox]:checked, .set[open]');
  return selecting === true || chosen !== null || document.querySelector('.asking[open]') !== null;
}

/**
 * Asks for the page again. While the user is choosing, the answer only tells whether they may still see it.
 */
async function refresh(): Promise<void> {
  // The page of an action that goes on is the answer to its form: there is none to ask for.
  if (document.hidden || goesOn !== null) return;
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const from = location.href;
  try {
    const answer = await fetch(from, {
      headers: { accept: 'text/html', ...(etag !== undefined && { 'if-none-match': etag }) },
      credentials: 'same-origin',
      cache: 'no-store',
      // A redirect leads to a login, which is not a newer version of this page.
      redirect: 'manual',
      signal: mine.signal,
    });
    if (isRefusal(answer)) return drop();
    if (answer.status === 200) {
      const html = await answer.text();
      if (location.href !== from || mine.signal.aborted) return;
      const next = pageIn(html);
      if (next === null) return drop();
      // Without live updates it is asked for only whether it is still theirs.
      if (everyMs() > 0 && !isBusy()) {
        etag = answer.headers.get('etag') ?? undefined;
        take(next);
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

/** Whether the server says that this page is not theirs to see: after a logout, or when rights were taken. */
function isRefusal({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || (status >= 400 && status < 500 && status !== 429);
}

/** Takes what stands on the page away. What was said of it stands in its place. */
function drop(): void {
  clearTimeout(timer);
  live?.remove();
  document.title = 'Signed out';
  const main = document.createElement('main');
  main.className = 'refused card';
  const title = document.createElement('h1');
  title.textContent = 'This page is no longer available';
  const text = document.createElement('p');
  text.textContent = 'You are signed out, or what the page showed no longer exists. ';
  const link = document.createElement('a');
  link.href = location.href;
  link.textContent = 'Reload the page';
  text.append(link);
  main.append(title, text);
  page()?.replaceWith(main);
  if (said !== null) said.textContent = '';
}

function pageIn(html: string): Element | null {
  return new DOMParser().parseFromString(html, 'text/html').querySelector('#page');
}

/** Replaces the page with a newer version, but keeps what the user has opened, chosen or written. */
function take(next: Element): void {
  const now = page();
  if (now === null) return;
  Idiomorph.morph(now, next, {
    morphStyle: 'outerHTML',
    ignoreActiveValue: true,
    restoreFocus: true,
    callbacks: {
      beforeAttributeUpdated: (name: string, node: Element) =>
        !(name === 'open' && node.tagName === 'DETAILS'),
      beforeNodeMorphed: (old: Node) =>
        // A chart takes its new figures itself, and what the viewer has set stays.
        !(old instanceof HTMLElement && (old.classList.contains('uplot') || old === live)),
      beforeNodeRemoved: (old: Node) => !(old instanceof HTMLElement && old.classList.contains('uplot')),
      beforeNodeAdded: (node: Node) =>
        !(
          node instanceof SVGElement &&
          document.querySelector('.uplot') !== null &&
          node.tagName === 'svg' &&
          node.parentElement?.matches('.plot') === true
        ),
    },
  });
  readClock();
  showZone(Date.now() + skewMs);
  tick();
  document.dispatchEvent(new CustomEvent('morphed'));
}

function beat(): void {
  live?.classList.remove('is-lost');
  live?.classList.add('is-beating');
  setTimeout(() => live?.classList.remove('is-beating'), 300);
}

document.addEventListener('keydown', onKey);
showSelected();
document.addEventListener('change', showSelected);
document.addEventListener('morphed', () => showSelected());

// One question at a time, and a click elsewhere is a no.
document.addEventListener('click', (event) => {
  for (const asking of document.querySelectorAll<HTMLDetailsElement>('.asking[open]')) {
    if (event.target instanceof Node && !asking.contains(event.target)) asking.open = false;
  }
});

// A form goes once.
document.addEventListener('submit', ({ target }) => {
  if (!(target instanceof HTMLFormElement) || target.method !== 'post') return;
  for (const button of target.querySelectorAll('button'))
    setTimeout(() => button.toggleAttribute('disabled', true));
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
  } else void refresh();
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

// Only the answer to a form of ours has this, so no link can make it go on.
if (goesOn !== null) {
  const next = setTimeout(() => goesOn.requestSubmit(), 500);
  // The user decides: a page that takes long to come must not be overtaken.
  document.addEventListener('click', () => clearTimeout(next));
}

if (page() !== null && live !== null && every !== null && goesOn === null) {
  live.hidden = false;
  every.value = remembered();
  if (every.value === '') every.value = '2';
  // What was said is said once: a reload does not say it again.
  const url = new URL(location.href);
  if (url.searchParams.has('done')) {
    for (const name of ['done', 'n', 'left']) url.searchParams.delete(name);
    history.replaceState(null, '', url);
    const notice = document.querySelector('#notice')?.textContent;
    if (said !== null && notice) said.textContent = notice;
    // And it stays to be read for a while.
    setTimeout(plan, 6_000);
  } else plan();
  readClock();
  showZone(Date.now() + skewMs);
  setInterval(tick, 1_000);
}
