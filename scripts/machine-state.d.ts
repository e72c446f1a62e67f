export function machineState(): Map<string, string>
export function differences(before: Map<string, string>, after: Map<string, string>): string[]
