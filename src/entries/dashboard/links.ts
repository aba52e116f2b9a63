/** The addresses of the dashboard's pages and assets, under its base path. */
export class Links {
  readonly base: string;
  readonly #root: string;

  /** @param name of the queue that they are about, among several */
  constructor(root: string, name?: string) {
    this.#root = root;
    this.base = `${root}${nameInPath(name)}`;
  }

  /** The overview of another one of several queues. */
  other(name: string): string {
    return `${this.#root}${nameInPath(name)}`;
  }

  /** A page, with what its URL says; values that are left out are not in it. */
  to(page: string, query: Readonly<Record<string, string | number | undefined>> = {}): string {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== '') params.set(name, String(value));
    }
    const text = params.size === 0 ? '' : `?${params}`;
    return `${this.base}${page === '/' && this.base !== '' ? '' : page}${text}`;
  }

  job(id: number): string {
    return this.to(`/jobs/${id}`);
  }

  /** The jobs that a filter such as `kind:send-receipt` finds. */
  jobs(filter: string): string {
    return this.to('/jobs', { q: filter });
  }

  /** A path in the dashboard that a form has sent back; anything else becomes the overview. */
  back(given: string | undefined): string {
    if (given === undefined || !/^\/(?![/\\])/.test(given)) return this.to('/');
    const { pathname, search, host } = new URL(given, 'http://dashboard.invalid');
    if (host !== 'dashboard.invalid' || pathname.startsWith('//')) return this.to('/');
    return `${this.base}${pathname}${search}`;
  }
}

/** What the paths of one of several queues begin with. */
export function nameInPath(name: string | undefined): string {
  return name === undefined ? '' : `/~${name}`;
}

/**
 * The path in the dashboard that a URL's path names, whether or not the server has taken off the base. A base
 * such as `/jobs` is also the path of a page: then the URL is taken to be whole.
 */
export function pathIn(base: string, pathname: string): string {
  if (base === '') return pathname;
  if (pathname === base) return '/';
  return pathname.startsWith(`${base}/`) ? pathname.slice(base.length) : pathname;
}
