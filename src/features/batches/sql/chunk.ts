/** The most jobs of one statement. */
export const CHUNK = 1_000;
