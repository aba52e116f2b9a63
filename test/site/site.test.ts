import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { homepage, root } from '../../site/repository.ts';
import { chromiumPath, launch, openPage, type Screen } from '../browser/support/chromium.ts';
import { dist, serveSite } from './support/serve-site.ts';

const BASE = homepage.pathname;

/** The addresses of all pages that were built, without the base. */
function builtPages(): string[] {
  return readdirSync(dist, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.html') && path !== '404.html')
    .map((path) => path.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, ''))
    .sort();
}

function htmlOf(page: string): string {
  return readFileSync(join(dist, /(^|\/)$/.test(page) ? `${page}index.html` : `${page}.html`), 'utf8');
}

const pages = builtPages();

describe('the built site', () => {
  test('has every page of the documentation, and a reference of every entry', () => {
    const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md') && path !== 'README.md')
      .map((path) => path.replace(/\.md$/, '').replace(/(^|\/)index$/, '$1'));
    expect(docs.length).toBeGreaterThan(20);
    expect(pages).toEqual(
      expect.arrayContaining([...docs, '', 'documentation', 'live', 'changelog', 'api/']),
    );
    const { exports }: { exports: object } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const entries = Object.keys(exports).filter((entry) => entry !== './package.json');
    expect(pages).toEqual(
      expect.arrayContaining(entries.map((entry) => `api/drizzle-queue${entry.slice(1)}`)),
    );
  });

  test('names every page in its sidebar, in the order of docs/README.md', () => {
    const html = htmlOf('getting-started');
    const named = [...html.matchAll(/<a class="VPLink link link" href="([^"]+)"/g)].map(([, href = '']) =>
      href.slice(BASE.length),
    );
    for (const page of pages.filter((name) => name !== '' && name !== 'documentation')) {
      expect(named, page).toContain(page);
    }
    const order = [
      'getting-started',
      'testing',
      'enqueueing',
      'handlers',
      'workers',
      'glossary',
      'guarantees',
      'architecture',
    ];
    expect(named.filter((name) => order.includes(name))).toEqual(order);
  });

  test('links to headings that exist', () => {
    const ids = new Map(
      pages.map((page) => [page, new Set([...htmlOf(page).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
    );
    const broken = pages.flatMap((page) =>
      [...htmlOf(page).matchAll(/ href="([^"]*)#([^"]+)"/g)].flatMap(([, path = '', anchor = '']) => {
        if (path !== '' && !path.startsWith(BASE)) return [];
        const target = path === '' ? page : decodeURI(path.slice(BASE.length));
        if (ids.get(target)?.has(decodeURIComponent(anchor))) return [];
        return [`${page} links to ${target}#${anchor}`];
      }),
    );
    expect([...new Set(broken)]).toEqual([]);
  });
});

describe.skipIf(chromiumPath === undefined)('in a browser', () => {
  let browser: Browser;
  let site: Awaited<ReturnType<typeof serveSite>>;

  beforeAll(async () => {
    site = await serveSite();
    browser = await launch();
  });

  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  const phone: Screen = { width: 320, colorScheme: 'dark' };

  test('every page answers, without a complaint and without a request to anywhere else', async () => {
    const { page, context, complaints } = await openPage(browser, site.origin, phone);
    for (const path of pages) {
      const answer = await page.goto(`${site.origin}${BASE}${path}`, { waitUntil: 'load' });
      expect(answer?.status(), path).toBe(200);
      expect(await page.locator('h1').first().isVisible(), path).toBe(true);
      expect(complaints, path).toEqual([]);
    }
    await context.close();
  });

  test('search finds a page by a word in it', async () => {
    const { page, context, complaints } = await openPage(browser, site.origin, {
      width: 1280,
      colorScheme: 'light',
    });
    await page.goto(`${site.origin}${BASE}getting-started`);
    await page.getByRole('button', { name: 'Search' }).first().click();
    await page.locator('#localsearch-input').fill('silentMs');
    const found = page.locator('#localsearch-list a').first();
    await found.waitFor();
    await found.click();
    await page.waitForURL((url) => url.pathname !== `${BASE}getting-started`);
    // The address changes before the page does.
    await page.locator('main').filter({ hasText: 'silentMs' }).waitFor();
    expect(complaints).toEqual([]);
    await context.close();
  });

  test('code can be copied', async () => {
    const { page, context } = await openPage(browser, site.origin, { width: 1280, colorScheme: 'light' });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.goto(`${site.origin}${BASE}enqueueing`);
    const block = page.locator('.vp-doc div[class*="language-"]').first();
    await block.hover();
    await block.locator('button.copy').click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied.trim()).toBe((await block.locator('code').innerText()).trim());
    expect(copied.length).toBeGreaterThan(10);
    await context.close();
  });
});
