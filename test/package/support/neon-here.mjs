// Loaded before an app that reaches Neon through the WebSocket of its driver: carries the bytes to a plain PostgreSQL instead.
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { pathToFileURL } from 'node:url';

/** What the driver uses of a WebSocket, over a plain connection. */
class Socket extends EventTarget {
  readyState = 0;
  #connection;

  /** @param {string} address */
  constructor(address) {
    super();
    const { hostname, port } = new URL(address);
    this.#connection = connect({ host: hostname, port: Number(port), noDelay: true })
      .on('connect', () => this.#say(new Event('open'), 1))
      .on('data', (data) => this.#say(new MessageEvent('message', { data: new Uint8Array(data).buffer }), 1))
      .on('error', (error) => this.#say(Object.assign(new Event('error'), { error }), 3))
      .on('close', () => this.#say(new Event('close'), 3));
  }

  /**
   * @param {Event} event
   * @param {number} readyState
   */
  #say(event, readyState) {
    this.readyState = readyState;
    this.dispatchEvent(event);
  }

  /** @param {Uint8Array} data */
  send(data) {
    this.#connection.write(Buffer.from(data));
  }

  close() {
    this.#connection.end();
  }
}

/** The package's two files, as the app finds them; none in programs that do not have it, such as npm itself. */
function filesOfPackage() {
  try {
    const commonJs = createRequire(`${process.cwd()}/package.json`).resolve('@vercel/postgres');
    return [commonJs, commonJs.replace(/\.cjs$/, '.js')];
  } catch {
    return [];
  }
}

for (const file of filesOfPackage()) {
  // The package itself first: it chooses a WebSocket when it is loaded.
  await import(pathToFileURL(file).href);
  const driver = createRequire(file).resolve('@neondatabase/serverless');
  const loaded = await import(
    pathToFileURL(file.endsWith('.cjs') ? driver : driver.replace(/\.js$/, '.mjs')).href
  );
  const { neonConfig } = loaded.default ?? loaded;
  neonConfig.webSocketConstructor = Socket;
  neonConfig.wsProxy = (/** @type {string} */ host, /** @type {number} */ port) => `${host}:${port}`;
  neonConfig.useSecureWebSocket = false;
  neonConfig.pipelineConnect = false;
}
