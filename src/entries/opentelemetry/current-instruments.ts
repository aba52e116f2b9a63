import { type Meter, metrics } from '@opentelemetry/api';
import { SCOPE } from './attributes.ts';

/**
 * Instruments of this meter; without one those of the global provider, even if that is registered later:
 * unlike tracers, meters of the global API stay what they were when they were asked for.
 */
export function currentInstruments<T>(given: Meter | undefined, create: (meter: Meter) => T): () => T {
  if (given !== undefined) {
    const instruments = create(given);
    return () => instruments;
  }
  let known: { readonly provider: unknown; readonly instruments: T } | undefined;
  return () => {
    const provider = metrics.getMeterProvider();
    if (provider !== known?.provider) known = { provider, instruments: create(provider.getMeter(SCOPE)) };
    return known.instruments;
  };
}
