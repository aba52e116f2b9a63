import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Dashboard } from '../dashboard/index.ts';

const COOKIE = 'drizzle-queue-token';
const NO_TOKEN = 'Open the address that the terminal printed; it contains the token.';

/**
 * Admits requests with the token: first from the printed address, and then by a cookie, so that the token is
 * not in the links or the history of the pages.
 *
 * Browsers send a cookie of 127.0.0.1 to every port of it, so any other local server would receive the token.
 * The dashboard therefore has a path that cannot be guessed, and the cookie belongs to that path alone. The
 * path opens nothing without the cookie. A token in the browser's storage would not reach links and forms.
 */
export class LockedDoor {
  readonly token: string = randomBytes(32).toString('base64url');
  /** Where the dashboard is, and the only place that its cookie is sent to. */
  readonly path: string = `/${randomBytes(16).toString('hex')}`;

  /** A dashboard behind this door. @param hosts the only names under which it answers */
  before(pages: Dashboard, hosts: readonly string[]): Dashboard {
    return async (request) => {
      const url = new URL(request.url);
      // Another name that is made to resolve to this machine is refused, token or not.
      if (!hosts.includes(request.headers.get('host') ?? ''))
        return refused('The dashboard does not answer under this host name.');
      if (url.pathname !== this.path && !url.pathname.startsWith(`${this.path}/`)) return refused(NO_TOKEN);
      const token = url.searchParams.get('token');
      if (request.method === 'GET' && token !== null && this.#fits(token)) {
        url.searchParams.delete('token');
        return new Response(null, {
          status: 303,
          headers: {
            location: `${url.pathname}${url.search}`,
            'set-cookie': `${COOKIE}=${this.token}; Path=${this.path}; HttpOnly; SameSite=Strict`,
            'cache-control': 'no-store',
            'referrer-policy': 'no-referrer',
          },
        });
      }
      if (this.#hasCookie(request.headers.get('cookie') ?? '')) return await pages(request);
      return refused(NO_TOKEN);
    };
  }

  #hasCookie(header: string): boolean {
    return header.split(';').some((each) => {
      const [name, value = ''] = each.trim().split('=');
      return name === COOKIE && this.#fits(value);
    });
  }

  /** In the same time, however much of it fits. */
  #fits(given: string): boolean {
    const hash = (text: string) => createHash('sha256').update(text).digest();
    return timingSafeEqual(hash(given), hash(this.token));
  }
}

function refused(why: string): Response {
  return new Response(`drizzle-queue dashboard: ${why}\n`, {
    status: 403,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  });
}
