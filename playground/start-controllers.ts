import type { Log } from '@kpng/api'
import type { Controller, ControllerContext } from './controllers/controller.js'
import { DeploymentController } from './controllers/deployments.js'
import { EndpointMirroringController } from './controllers/endpoint-mirroring.js'
import { EndpointSliceController } from './controllers/endpoint-slices.js'
import { EndpointsController } from './controllers/endpoints.js'
import { EventRecorder } from './controllers/events.js'
import { GarbageCollector } from './controllers/garbage-collector.js'
import { NamespaceController, ServiceCidrController } from './controllers/namespaces.js'
import type { Settings } from './options.js'
import { Kubelet } from './pods/kubelet.js'
import { PodAddresses } from './pods/pod-addresses.js'
import { Scheduler } from './pods/scheduler.js'
import type { Registry } from './registry/registry.js'
import type { ServiceNetwork } from './services/network.js'

/** Starts everything that keeps the cluster going. */
export function startControllers(
  registry: Registry,
  network: ServiceNetwork,
  settings: Settings,
  log: Log,
): Controller {
  const context: ControllerContext = { registry, events: new EventRecorder(registry), log }
  const { maxGracePeriodSeconds, podReadyDelayMs: readyDelayMs, podServer } = settings
  const addresses = new PodAddresses(settings.podCidr, settings.podIpv6Addresses)
  const controllers: Controller[] = [
    new NamespaceController(context, maxGracePeriodSeconds),
    new ServiceCidrController(context, network),
    new GarbageCollector(context, maxGracePeriodSeconds),
    new EndpointSliceController(context),
    new EndpointsController(context),
    new EndpointMirroringController(context),
    new DeploymentController(context, maxGracePeriodSeconds),
    ...(settings.runPods ? [new Scheduler(context), new Kubelet(context, { readyDelayMs, addresses, podServer })] : []),
  ]
  return {
    close: async () => {
      await Promise.all(controllers.map((controller) => controller.close()))
    },
  }
}
