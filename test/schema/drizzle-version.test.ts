import { expect, test } from 'vitest';
import { checkDrizzleVersion } from '../../src/core/schema/drizzle-version.ts';

test.each(['0.34.1', '0.35.0', '0.45.4', '0.100.0', '1.0.0-rc.5', '1.0.0-rc.10-abc', '1.0.0', '2.3.4'])(
  'drizzle-orm %s will do',
  (version) => {
    expect(() => checkDrizzleVersion(version)).not.toThrow();
  },
);

test.each(['0.33.0', '0.34.0', '0.9.1'])('drizzle-orm %s is refused in one sentence', (version) => {
  expect(() => checkDrizzleVersion(version)).toThrow(
    `drizzle-queue needs drizzle-orm 0.34.1 or newer, but found ${version}: npm install drizzle-orm@latest`,
  );
});

test.each(['1.0.0-beta.22', '1.0.0-rc.4', '1.0.0-rc.4-abc'])('so is drizzle-orm %s', (version) => {
  expect(() => checkDrizzleVersion(version)).toThrow(
    `drizzle-queue needs drizzle-orm 1.0.0-rc.5 or newer, but found ${version}: npm install drizzle-orm@latest`,
  );
});
