/**
 * Tests with the apps of others, by file, and what each is made of. With `PACKAGE=landing` a file runs only if one of
 * these has changed, or the file itself. They take most of the time, and break by releases of frameworks more often than
 * by changes of the library. Every night all of them run.
 */
const APPS: Readonly<Record<string, readonly string[]>> = {
  container: ['docs/guides/deploying.md', 'fixtures/apps/'],
  'guide-deploying': ['docs/guides/deploying.md', 'fixtures/apps/fastify/'],
  'guide-fastify': ['docs/guides/fastify.md', 'fixtures/apps/fastify/'],
  'guide-nest': ['docs/guides/nestjs.md', 'fixtures/apps/nest/'],
  'guide-next': ['docs/guides/nextjs.md', 'fixtures/apps/next/'],
  'guide-servers': [
    ...['docs/guides/bun.md', 'docs/guides/express.md', 'docs/guides/hono.md'],
    ...['fixtures/apps/bun/', 'fixtures/apps/express/', 'fixtures/apps/hono/', 'fixtures/apps/servers/'],
  ],
  'guide-trpc': ['docs/guides/trpc-monorepo.md', 'fixtures/apps/trpc/'],
  'guide-vite': [
    ...['docs/guides/nuxt.md', 'docs/guides/sveltekit.md'],
    ...['fixtures/apps/nuxt/', 'fixtures/apps/sveltekit/'],
  ],
  jest: ['fixtures/jest/'],
  mounting: ['docs/dashboard.md', 'fixtures/mounting/'],
  nest: ['fixtures/nest/'],
  next: ['fixtures/next/'],
  'package-managers': ['fixtures/monorepo/'],
  runners: ['fixtures/bun/', 'fixtures/node-test/'],
  'title-generation': ['examples/title-generation/'],
  vitest: ['fixtures/vitest/'],
};

/** The test files that may be left out before a change lands, given the files that it changes: none if they are unknown. */
export function leftOut(changed: readonly string[] | undefined): string[] {
  if (changed === undefined) return [];
  const needed = (name: string, parts: readonly string[]): boolean =>
    [`${name}.test.ts`, ...parts].some((part) => {
      const path = /^(?:docs|examples)\//.test(part) ? part : `test/package/${part}`;
      return changed.some((file) => file.startsWith(path));
    });
  return Object.entries(APPS)
    .filter(([name, parts]) => !needed(name, parts))
    .map(([name]) => `test/package/${name}.test.ts`);
}
