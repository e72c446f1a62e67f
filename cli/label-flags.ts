import type { Command } from 'commander'
import { type Flags, textFlag } from './context.js'

/** The flags that say which labels and annotations of Kubernetes objects are passed on to backends. */
export const addLabelFlags = (command: Command): Command =>
  command
    .option('--with-service-labels <globs>', 'labels of Services to pass on, by key: app,team/* (default: none)')
    .option('--with-service-annotations <globs>', 'annotations of Services to pass on (default: none)')
    .option('--with-node-labels <globs>', 'labels of Nodes to pass on (default: none)')
    .option('--with-node-annotations <globs>', 'annotations of Nodes to pass on (default: none)')

export const labelOptions = (flags: Flags) => ({
  serviceLabels: globs(flags, 'withServiceLabels'),
  // The winkernel backend reads this one, as kube-proxy on Windows does.
  serviceAnnotations: [...globs(flags, 'withServiceAnnotations'), 'preserve-destination'],
  nodeLabels: globs(flags, 'withNodeLabels'),
  nodeAnnotations: globs(flags, 'withNodeAnnotations'),
})

/** A list with commas; a comma inside braces is part of a glob. */
function globs(flags: Flags, name: string): string[] {
  const parts = (textFlag(flags, name) ?? '').match(/(?:\{[^}]*\}|[^,{])+/g) ?? []
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}
