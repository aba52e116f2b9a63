import type { Page } from './pages.ts';

/**
 * The guides whose commands and files a test applies to an app with the framework they speak of. Their code needs packages that
 * are not installed here, so it is compiled and run there.
 */
export const followedGuides: Readonly<Record<string, string>> = {
  'docs/guides/bun.md': 'test/package/guide-servers.test.ts',
  'docs/guides/deploying.md': 'test/package/guide-deploying.test.ts',
  'docs/guides/express.md': 'test/package/guide-servers.test.ts',
  'docs/guides/fastify.md': 'test/package/guide-fastify.test.ts',
  'docs/guides/hono.md': 'test/package/guide-servers.test.ts',
  'docs/guides/nestjs.md': 'test/package/guide-nest.test.ts',
  'docs/guides/nextjs.md': 'test/package/guide-next.test.ts',
  'docs/guides/nuxt.md': 'test/package/guide-vite.test.ts',
  'docs/guides/sveltekit.md': 'test/package/guide-vite.test.ts',
  'docs/guides/trpc-monorepo.md': 'test/package/guide-trpc.test.ts',
};

/** The pages whose code and commands are checked here. */
export function withoutFollowed(pages: readonly Page[]): Page[] {
  return pages.filter(({ path }) => !(path in followedGuides));
}
