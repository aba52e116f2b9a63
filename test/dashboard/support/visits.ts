import type { Dashboard } from 'drizzle-queue/dashboard';
import type { Database } from '../../../src/core/sql/executor.ts';

export const ORIGIN = 'http://shop.test';

/** The same database as another object: its figures are not those that an earlier test has asked for. */
export function another<T extends Database>(db: T): T {
  return Object.create(db);
}

/** Asks a dashboard for a page as a browser does. */
export async function get(
  dashboard: Dashboard,
  path: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return await dashboard(
    new Request(`${ORIGIN}${path}`, { headers: { 'sec-fetch-site': 'same-origin', ...headers } }),
  );
}

/** The text of a page that is there. */
export async function page(dashboard: Dashboard, path: string): Promise<string> {
  const answer = await get(dashboard, path);
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${textOf(text)}`);
  return text;
}

/** Sends a form as a browser does from a page of the dashboard. */
export async function post(
  dashboard: Dashboard,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = { 'sec-fetch-site': 'same-origin' },
): Promise<Response> {
  return await dashboard(
    new Request(`${ORIGIN}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body: String(new URLSearchParams(fields)),
    }),
  );
}

/** What somebody reads of a page. */
export function textOf(html: string): string {
  return html
    .replace(/<(head|script)[^>]*>[\s\S]*?<\/\1>/g, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');
}

/** Every form of a page: where it goes, and what it sends. */
export function formsOf(html: string): { action: string; fields: Record<string, string> }[] {
  return [...html.matchAll(/<form method="post" action="([^"]+)"[^>]*>([\s\S]*?)<\/form>/g)].map(
    ([, action = '', inner = '']) => ({
      action,
      fields: Object.fromEntries(
        [...inner.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)].map(
          ([, name = '', value = '']) => [
            name,
            value
              .replaceAll('&amp;', '&')
              .replaceAll('&quot;', '"')
              .replaceAll('&#39;', "'")
              .replaceAll('&lt;', '<')
              .replaceAll('&gt;', '>'),
          ],
        ),
      ),
    }),
  );
}
