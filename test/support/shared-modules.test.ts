import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
/**
 * They have a configuration of their own, which loads each module once per file, or names it as one that Vitest runs
 * for each; and a file that runs none of the tests.
 */
const OTHERS = /(^|\/)(package|citus|browser|site|import|faults|upgrades\/previous|node_modules)\//;
const HOOK = /^(?:export )?(?:const \w+ = )?((?:before|after)(?:All|Each)|use[A-Z]\w*)\(/m;

// A process loads it for its first test file alone; the next one would get a database that is gone.
test('no module that test files share gives them a hook or a database by being imported', () => {
  const shared = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !OTHERS.test(path),
  );
  expect(shared.length).toBeGreaterThan(100);
  const found = shared.flatMap((path) => {
    const hook = HOOK.exec(readFileSync(join(root, path), 'utf8'))?.[1];
    return hook === undefined ? [] : [`${path} calls ${hook}`];
  });
  expect(found).toEqual([]);
});
