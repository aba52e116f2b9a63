import { expect, test } from 'vitest';
import { checkDrizzleVersion } from '../../src/schema/drizzle-version.ts';

test.each(['0.34.1', '0.45.4', '0.100.0', '1.0.0-rc.5', '2.3.4'])('drizzle-orm %s will do', (version) => {
  expect(() => checkDrizzleVersion(version)).not.toThrow();
});

test.each(['0.33.0', '0.9.1'])('drizzle-orm %s is refused in one sentence', (version) => {
  expect(() => checkDrizzleVersion(version)).toThrow(
    `drizzle-queue needs drizzle-orm 0.34.1 or newer, and here it is ${version}: npm install drizzle-orm@latest`,
  );
});
