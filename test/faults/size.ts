/**
 * Whether less is enough: `FAULTS=short`, as on GitHub, and `FAULTS=landing`, which also runs fewer files
 * (vitest.faults.config.ts).
 */
const short = process.env.FAULTS === 'short' || process.env.FAULTS === 'landing';

/** How much of a fault: enough to find what is broken, or as much as is promised. */
export function size(enough: number, whole: number): number {
  return short ? enough : whole;
}
