import type { Context } from 'hono';
import { csrf } from 'hono/csrf';
import { secureHeaders } from 'hono/secure-headers';

/** Refuses forms that come from another site: by `Sec-Fetch-Site`, or by the origin where there is none. */
export function ownForms(trusted: readonly string[] | undefined) {
  return csrf({ origin: (origin, c) => isOwnOrigin(origin, c, trusted) });
}

/** Whether an origin is the one that the browser sees, which a proxy may have put into another header. */
function isOwnOrigin(origin: string, c: Context, trusted: readonly string[] = []): boolean {
  if (trusted.includes(origin)) return true;
  const own = [c.req.header('host'), c.req.header('x-forwarded-host'), new URL(c.req.url).host];
  try {
    const { host, protocol } = new URL(origin);
    return /^https?:$/.test(protocol) && own.includes(host);
  } catch {
    return false; // Such as `null`.
  }
}

/** The headers of each answer: no code but the dashboard's own files, and nothing from anywhere else. */
export function protectiveHeaders() {
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'", 'data:'],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      frameAncestors: ["'none'"],
      baseUri: ["'none'"],
    },
    xFrameOptions: 'DENY',
    // Those that say something about the whole host are the app's to send.
    strictTransportSecurity: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
  });
}
