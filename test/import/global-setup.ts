import { installBench } from '../../bench/install.ts';

/** The peers are those of the benches, which CI installs anyway. */
export default function setup(): void {
  installBench();
}
