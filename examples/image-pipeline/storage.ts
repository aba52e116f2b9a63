/** Objects by key, over HTTP. In earnest the client of your object storage; whatever it is, pass it the signal. */
export interface Storage {
  put(key: string, data: Uint8Array | string, signal?: AbortSignal): Promise<void>;
  get(key: string, signal?: AbortSignal): Promise<Buffer>;
  /** Removes an object, or does nothing where there is none. */
  remove(key: string): Promise<void>;
  /** The keys that start with this. */
  list(prefix: string): Promise<string[]>;
}

export function openStorage(url = process.env.STORAGE_URL): Storage {
  const call = async (key: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(new URL(key, url), init);
    if (response.ok) return response;
    // What nobody reads would keep the connection.
    await response.body?.cancel();
    throw new Error(`${init.method} ${key}: the storage answered ${response.status}`);
  };
  return {
    async put(key, data, signal) {
      await (await call(key, { method: 'PUT', body: data, signal: signal ?? null })).body?.cancel();
    },
    async get(key, signal) {
      const response = await call(key, { method: 'GET', signal: signal ?? null });
      return Buffer.from(await response.arrayBuffer());
    },
    async remove(key) {
      await (await call(key, { method: 'DELETE' })).body?.cancel();
    },
    async list(prefix) {
      return (await (await call(`?prefix=${prefix}`, { method: 'GET' })).json()) as string[];
    },
  };
}
