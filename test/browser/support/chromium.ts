import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
];

/** Where a Chromium is: `CHROMIUM_PATH`, or where Linux distributions put it. */
export const chromiumPath = process.env.CHROMIUM_PATH ?? PLACES.find((path) => existsSync(path));

if (chromiumPath === undefined) {
  console.log('SKIPPED: there is no Chromium; install it (apt-get install chromium) or set CHROMIUM_PATH');
}

/** @param args more of its command line */
export async function launch(args: readonly string[] = []): Promise<Browser> {
  if (chromiumPath === undefined) throw new Error('there is no Chromium');
  return await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...args],
  });
}

export interface Screen {
  readonly width: number;
  readonly height?: number;
  readonly colorScheme: 'light' | 'dark';
  readonly javaScriptEnabled?: boolean;
  readonly timezoneId?: string;
}

/** A page that notes whatever must not happen on it. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Console errors, violations of the CSP, and requests to anywhere but the server. */
  readonly complaints: string[];
}

export async function openPage(browser: Browser, origin: string, screen: Screen): Promise<WatchedPage> {
  const { width, height = 900, ...rest } = screen;
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce', ...rest });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) complaints.push(`request: ${request.url()}`);
  });
  if (rest.javaScriptEnabled !== false) {
    await page.exposeFunction('reportViolation', (text: string) => complaints.push(`CSP: ${text}`));
    await page.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => {
        Reflect.get(globalThis, 'reportViolation')(`${event.violatedDirective} ${event.blockedURI}`);
      });
    });
  }
  return { page, context, complaints };
}
