/** Something that changes now and then, for those who wait until it has. */
export class Changes {
  #announce: () => void = () => undefined;

  /** Lets go on whoever waits at this moment. */
  announce(): void {
    this.#announce();
  }

  /** Resolves at the next change. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => {
      const others = this.#announce;
      this.#announce = () => {
        this.#announce = () => undefined;
        others();
        resolve();
      };
    });
  }
}
