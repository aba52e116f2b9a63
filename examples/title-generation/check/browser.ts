/** A user with a browser that runs no JavaScript: forms are sent as HTML sends them. */

export interface Page {
  readonly url: string;
  readonly status: number;
  /** The whole response, streamed parts included. */
  readonly html: string;
}

export class Browser {
  constructor(
    readonly origin: string,
    readonly user: string,
  ) {}

  async open(path: string): Promise<Page> {
    const response = await fetch(new URL(path, this.origin), { headers: { cookie: `user=${this.user}` } });
    return { url: response.url, status: response.status, html: await response.text() };
  }

  /** Sends the form of a page with these fields; returns where that leads. */
  async send(page: Page, fields: Readonly<Record<string, string>>): Promise<string> {
    const form = new FormData();
    for (const [input] of page.html.matchAll(/<input type="hidden"[^>]*>/g)) {
      form.set(attribute(input, 'name'), attribute(input, 'value'));
    }
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
    const response = await fetch(page.url, {
      method: 'POST',
      headers: { cookie: `user=${this.user}`, origin: this.origin },
      body: form,
      redirect: 'manual',
    });
    const location = response.headers.get('location');
    if (response.status !== 303 || location === null) {
      throw new Error(
        `The form was answered with ${response.status}: ${(await response.text()).slice(0, 500)}`,
      );
    }
    return location;
  }
}

function attribute(tag: string, name: string): string {
  const text = new RegExp(` ${name}="([^"]*)"`).exec(tag)?.[1] ?? '';
  return text.replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&amp;', '&');
}
