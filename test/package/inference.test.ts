import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { endOf } from './support/run-program.ts';
import { tools } from './support/tools.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * `npm test` holds what the types infer (test/types) to TypeScript 5.9. This is the same for 7, whose compiler is another program:
 * `expectTypeOf` and `@ts-expect-error` fail as errors of the compiler.
 */
test.each([
  ['0.45', 'tsconfig.json'],
  ['1.0', 'tsconfig.v1.json'],
])('with drizzle-orm %s TypeScript 7 infers the same types as 5.9', async (_, project) => {
  const compiled = await endOf(
    process.execPath,
    [tools.typescript['7.0'], '-p', project, '--listFilesOnly'],
    {
      cwd: root,
    },
  );
  expect(compiled.stdout).toContain(join('test', 'types', 'find-and-list.test-d.ts'));

  const { code, output } = await endOf(process.execPath, [tools.typescript['7.0'], '-p', project], {
    cwd: root,
  });
  expect(output).toBe('');
  expect(code).toBe(0);
});
