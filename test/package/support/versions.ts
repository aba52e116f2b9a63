/** A major of drizzle-orm that the library supports. */
export type DrizzleMajor = '0.45' | '1.0';

/** The versions that its tests run with; the same as in the repository's package.json. */
export const DRIZZLE_VERSIONS: Readonly<Record<DrizzleMajor, string>> = {
  '0.45': '0.45.4',
  '1.0': '1.0.0-rc.5',
};

/** The drizzle-kit that belongs to each. */
export const DRIZZLE_KIT_VERSIONS: Readonly<Record<DrizzleMajor, string>> = {
  '0.45': '0.31.11',
  '1.0': '1.0.0-rc.5',
};

export const DRIZZLE_MAJORS: readonly DrizzleMajor[] = ['0.45', '1.0'];
