import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import { anchorOf, linksAsOnGitHub } from '../links.ts';
import { REWRITES, sidebar } from '../pages.ts';
import { homepage, repository, root } from '../repository.ts';

const source = (path: string): string => `${root}src/${path}`;

/**
 * What the pages may load: of this site alone. `unsafe-inline` is for VitePress, `wasm-unsafe-eval` for PostgreSQL;
 * what visitors write runs in Web Workers, which have a policy of their own.
 */
const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'self'",
].join('; ');

export default defineConfig({
  title: 'drizzle-queue',
  description: 'A Postgres job queue that is part of your Drizzle schema.',
  lang: 'en',
  base: homepage.pathname,
  // The pages stay where they are read on GitHub.
  srcDir: root,
  srcExclude: ['{.changeset,.ci,.github,bench,drizzle*,examples,scripts,src,test}/**', 'NOTICES.md'],
  rewrites: REWRITES,
  outDir: fileURLToPath(new URL('../dist', import.meta.url)),
  cacheDir: fileURLToPath(new URL('../node_modules/.vitepress', import.meta.url)),
  cleanUrls: true,
  head: [
    ['meta', { 'http-equiv': 'Content-Security-Policy', content: POLICY }],
    ['link', { rel: 'icon', href: 'data:,' }],
  ],
  markdown: {
    // The usual ones have too little contrast.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    anchor: { slugify: anchorOf },
    config: (markdown) => linksAsOnGitHub(markdown),
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Live', link: '/live' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository, ariaLabel: 'The repository' }],
  },
  vite: {
    resolve: {
      // The library as it is in this repository, without anything in between.
      alias: [
        { find: /^drizzle-queue$/, replacement: source('index.ts') },
        { find: /^drizzle-queue\/schema$/, replacement: source('core/schema/index.ts') },
      ],
    },
    worker: { format: 'es' },
    build: { target: 'es2022', chunkSizeWarningLimit: 2_000 },
    // It finds its files beside itself.
    optimizeDeps: { exclude: ['@electric-sql/pglite'] },
  },
});
