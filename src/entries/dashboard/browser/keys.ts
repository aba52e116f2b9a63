import { toggleRow } from './selection.ts';

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
  x: ['select the row', () => toggleRow()],
  r: ['redrive', () => press(/\/redrive(?!-from)/)],
  c: ['cancel', () => press(/\/cancel$/)],
  p: ['pause or resume', () => press(/\/(pause|resume)/)],
  l: ['turn live updates on or off', () => toggle()],
  '?': ['show these keys', () => help()],
};

function toFilter(): void {
  const filter = document.querySelector<HTMLInputElement>('#filter');
  filter?.focus();
  if (filter !== null) return;
  const jobs = document.querySelector<HTMLAnchorElement>('nav a[href$="/jobs"]');
  if (jobs !== null) location.assign(jobs.href);
}

function toggle(): void {
  const every = document.querySelector<HTMLSelectElement>('#every');
  if (every === null) return;
  every.value = every.value === '0' ? '2' : '0';
  every.dispatchEvent(new Event('change'));
}

/** Shows the keys. */
export function help(): void {
  const open = document.querySelector('dialog');
  open?.close();
  if (open !== null) return;
  const dialog = document.createElement('dialog');
  dialog.setAttribute('aria-label', 'Keys');
  const list = document.createElement('dl');
  for (const [key, [what]] of Object.entries(KEYS)) {
    const term = document.createElement('dt');
    term.append(Object.assign(document.createElement('kbd'), { textContent: key }));
    list.append(term, Object.assign(document.createElement('dd'), { textContent: what }));
  }
  const close = Object.assign(document.createElement('button'), {
    textContent: 'Close',
    className: 'button',
  });
  close.addEventListener('click', () => dialog.close());
  dialog.append(list, close);
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** Does what a key is for, unless the user is typing. */
export function onKey(event: KeyboardEvent): void {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === 'Escape') {
    for (const asking of document.querySelectorAll<HTMLDetailsElement>('.asking[open]')) asking.open = false;
    if (target instanceof HTMLInputElement) target.blur();
    return;
  }
  const ticks = target instanceof HTMLInputElement && ['checkbox', 'radio'].includes(target.type);
  if (
    (target instanceof HTMLInputElement && !ticks) ||
    target instanceof HTMLSelectElement ||
    target instanceof HTMLTextAreaElement
  )
    return;
  const found = Object.hasOwn(KEYS, key) ? KEYS[key] : undefined;
  if (found === undefined) return;
  event.preventDefault();
  found[1]();
}
