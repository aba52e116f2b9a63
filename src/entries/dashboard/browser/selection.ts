/** Says how many jobs are selected; ticks all of the page, or none, by the box above them. */
export function showSelected(event?: Event): void {
  const boxes = [...document.querySelectorAll<HTMLInputElement>('.choose input[name=id]')];
  const all = document.querySelector<HTMLInputElement>('#select-all');
  if (all !== null) {
    all.hidden = false;
    if (event?.target === all) for (const box of boxes) box.checked = all.checked;
    const ticked = boxes.filter(({ checked }) => checked).length;
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
    const count = document.querySelector('[data-selected]');
    if (count !== null) count.textContent = ticked === 0 ? '' : String(ticked);
  }
  // A user who ticks a box means the ticked jobs.
  const [selected] = document.querySelectorAll<HTMLInputElement>('.bulk input[value=selected]');
  const ticks = event?.target instanceof HTMLInputElement && event.target.type === 'checkbox';
  if (ticks && selected !== undefined) selected.checked = true;
}

/** Ticks the box of the row that keys have moved to, or takes the tick away. */
export function toggleRow(): void {
  const row = document.activeElement?.closest('[data-row]');
  const box = row?.querySelector<HTMLInputElement>('input[name=id]');
  box?.click();
}
