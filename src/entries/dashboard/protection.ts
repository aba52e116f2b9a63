import type { MiddlewareHandler } from 'hono';

/**
 * Whether a request may change something: it comes from a page of the dashboard, or from a trusted origin.
 * The browser says so in `Sec-Fetch-Site`. One that does not send it, as over plain HTTP, is judged by
 * its `Origin`.
 */
export function isOwnRequest(request: Request, trusted: readonly string[] = []): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') return true;
  const [site, origin] = [request.headers.get('sec-fetch-site'), request.headers.get('origin')];
  if (origin !== null && trusted.includes(origin)) return true;
  // An origin with the right host proves nothing where the browser says that the page is another's.
  if (site !== null) return site === 'same-origin';
  return origin !== null && isOwnOrigin(origin, request);
}

/** Whether an origin is the one that the browser sees, which a proxy may have put into another header. */
function isOwnOrigin(origin: string, { headers, url }: Request): boolean {
  if (!URL.canParse(origin)) return false; // Such as `null`.
  const { host, protocol } = new URL(origin);
  const own = new URL(url);
  if (![headers.get('host'), headers.get('x-forwarded-host'), own.host].includes(host)) return false;
  if (protocol === 'https:') return true;
  // A page that was sent without TLS may be forged: it must not act on a host that speaks TLS.
  const secure = own.protocol === 'https:' || headers.get('x-forwarded-proto')?.startsWith('https') === true;
  return protocol === 'http:' && !secure;
}

/**
 * The headers of the dashboard's own answers: no code but its own files, and nothing from anywhere else.
 * Those that say something about the whole host are the app's to send.
 */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // The filter of old browsers could be used to leave parts of a page out.
  'x-xss-protection': '0',
};

export interface ProtectedEnv {
  readonly Variables: {
    /** Whether it is a response of the app's, such as the page of a login, which has its own headers. */
    isOfApp?: true;
  };
}

export function protectiveHeaders(): MiddlewareHandler<ProtectedEnv> {
  return async (c, next) => {
    await next();
    if (c.get('isOfApp')) return;
    for (const [name, value] of Object.entries(HEADERS)) c.res.headers.set(name, value);
  };
}
