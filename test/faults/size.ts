/** Whether less is enough, as it is where the whole suite runs for each change: `FAULTS=short`. */
const short = process.env.FAULTS === 'short';

/** How much of a fault: enough to find what is broken, or as much as is promised. */
export function size(enough: number, whole: number): number {
  return short ? enough : whole;
}
