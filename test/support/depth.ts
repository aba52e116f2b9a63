/** Whether properties are held for as many values as is promised: `DEPTH=full`, as `npm run test:all` sets it. */
export const full = process.env.DEPTH === 'full';

/** How many values a property is held for: enough for a look at each change, or the whole number. */
export function depth(look: number, whole: number): number {
  return full ? whole : look;
}
