# Lo que dice la tienda en español. Los puntos de una clave se escriben aquí como "-".

shop-welcome = ¡Bienvenido a la tienda de la esquina! ¿Qué puedo hacer por ti?
shop-menu-order = Pedir algo
shop-menu-track = ¿Dónde está mi pedido?
shop-menu-orders = Mis pedidos
shop-menu-language = Idioma

shop-lost = Di /start para ver lo que sé hacer.
shop-too-fast = Una cosa a la vez, por favor: todavía estoy leyendo.

shop-language-which = ¿En qué idioma hablamos?
shop-language-changed = Ahora hablamos español.

shop-product-coffee = Café
shop-product-tea = Té
shop-product-cake = Torta

shop-order-what = ¿Qué te gustaría?
shop-order-count = ¿{ $product ->
    [coffee] Cuántos cafés
    [tea] Cuántos tés
   *[cake] Cuántos pedazos de torta
 }?
shop-order-count-again = Un número, por favor; por ejemplo, 2.
shop-order-how = ¿Te lo llevamos?
shop-order-pick-up = Lo recojo
shop-order-deliver = A domicilio
shop-order-still-there = ¿Sigues ahí? Tu pedido te espera.
shop-order-lapsed = Devolví tu pedido al estante. Di /order para empezar de nuevo.
shop-order-wholesale = ¡Eso es mucho! Llámanos, por favor, y acordamos un buen precio.
shop-order-ready = Estará listo en diez minutos.
shop-order-on-its-way = Va en camino a { $address }.

shop-address-street = ¿Qué calle y número?
shop-address-town = ¿Qué ciudad?
shop-address-confirm = { $street }, { $town }: ¿está bien así?

shop-receipt = Pedido { $number }: { $count } × { $product ->
    [coffee] café
    [tea] té
   *[cake] torta
 }, { $price } €.

shop-orders = { $count ->
    [0] Todavía no has pedido nada.
    [one] Tienes un pedido:
   *[other] Tienes { $count } pedidos:
 }
shop-orders-line = { $number }: { $count } × { $product ->
    [coffee] café
    [tea] té
   *[cake] torta
 }, { $price } €

shop-track-none = Todavía no has pedido nada.
shop-track-which = ¿De qué pedido hablas?
shop-track-unknown = No conozco ese pedido. ¿Qué número tiene?
shop-track-stage = El pedido { $number } { $stage ->
    [riding] va en bicicleta y ya casi llega.
   *[waiting] te espera en el mostrador.
 }
