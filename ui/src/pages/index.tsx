export { AuditPage } from "./audit/page";
export { CgroupsPage } from "./cgroups/page";
export { FleetPage } from "./fleet/page";
export { HomePage } from "./home/page";
export { IncidentsPage } from "./incident/list";
export { IncidentPage } from "./incident/page";
export { FrozenNote } from "./parts/frozen";

import "./pages.css";
