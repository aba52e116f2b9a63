/*
 * The server writes times in UTC and says so. Where scripts run, all times of a page are those of this
 * browser's clock, as the axes of the charts are, and the page says that instead.
 */

/** Shows the times of the page, and says in which zone they are. */
export function showZone(nowMs: number): void {
  const zone = offsetOf(new Date(nowMs));
  for (const time of document.querySelectorAll<HTMLTimeElement>('time[datetime]')) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const whole = `${clockText(at)}.${String(at.getMilliseconds()).padStart(3, '0')} ${offsetOf(at)}`;
    change(time, 'title', `${time.dataset.tick === 'since' ? 'since ' : ''}${whole}`);
    // Summer time may have begun or ended in between.
    const differs = offsetOf(at) === zone ? '' : ` ${offsetOf(at)}`;
    if (time.dataset.tick === undefined) change(time, 'textContent', `${clockText(at)}${differs}`);
  }
  for (const note of document.querySelectorAll<HTMLElement>('[data-zone]'))
    change(note, 'textContent', `Times are local, ${zone}.`);
}

function change(element: HTMLElement, name: 'title' | 'textContent', text: string): void {
  if (element[name] !== text) element[name] = text;
}

function clockText(at: Date): string {
  const date = [at.getFullYear(), at.getMonth() + 1, at.getDate()].map(twoDigits).join('-');
  return `${date} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(':')}`;
}

/** Such as `UTC+02:00`. */
function offsetOf(at: Date): string {
  const minutes = -at.getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `UTC${minutes < 0 ? '-' : '+'}${twoDigits(hours)}:${twoDigits(rest)}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, '0');
}
